package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/calibrate/sets"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset/groups"
	"github.com/swagwrap/swagwrap/internal/dataset/keys"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/study/calibration"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
)

// coverage makes the rows that choose a guaranteed coverage.
func coverage(p *calibration.Guarantee) flags.Table {
	t := flags.Table{
		flags.Parsed(flags.Row{
			Name: "coverage",
			Usage: "choose thresholds so that sets, or intervals, contain the label of `SHARE` of new examples, such as 90%; or size=2: " +
				"so that sets have at most 2 classes on average",
		}, &p.Amount, parseAmount),
		flags.OneOf(flags.Row{
			Name:   "set",
			Usage:  "of classes, make sets by lac|aps|raps: lac makes the smallest, aps larger ones for hard examples",
			Preset: "lac",
			Not:    "uncovered",
		}, &p.Method, sets.Methods...),
		flags.Text(flags.Row{
			Name: "by",
			Usage: "keep the guarantee for each class, or each group of examples: `HOW` is class, folder, folder:2, TABLE.csv:COLUMN, " +
				"or a regular expression with parentheses for the path",
			Preset: "all together",
			Not:    "uncovered",
		}, &p.By),
	}
	t[0].Then = func() error {
		if p.By != "" && p.By != guarantee.ByClass {
			p.GroupOf = func(of *calibration.Predictions) (func(k int) string, error) { return groupsBy(p.By, of) }
		}
		if p.Amount != (calibration.Amount{}) {
			return nil
		}
		return t.Refuse("uncovered", "say how much: --coverage 90%", "--* without --coverage")
	}
	return t
}

// leastShare and mostShare bound a guaranteed coverage.
const leastShare, mostShare = 0.01, 0.99999

// parseAmount parses a share, or size=N.
func parseAmount(s string) (calibration.Amount, error) {
	number, sized := strings.CutPrefix(s, "size=")
	if !sized {
		share, err := parseShare(s)
		return calibration.Amount{Level: share}, err
	}
	size, err := strconv.ParseFloat(number, 64)
	if err != nil || !(size >= leastSize && size <= mostSize) {
		return calibration.Amount{}, fmt.Errorf("%q: want size=N with a number of classes from %g to %g, such as size=2", s,
			leastSize, mostSize)
	}
	return calibration.Amount{Size: size}, nil
}

// leastSize and mostSize bound a guaranteed mean size of sets.
const leastSize, mostSize = 0.01, 1e6

// parseShare parses a share such as 90% or 0.9.
func parseShare(s string) (share float64, err error) {
	share, err = word.Share(s, leastShare, mostShare)
	if err != nil {
		err = fmt.Errorf("%w, such as 90%% or 0.9", err)
	}
	return share, err
}

// groupsBy returns the groups of examples that --by names. Without paths only a table can name the groups.
func groupsBy(how string, p *calibration.Predictions) (func(k int) string, error) {
	names, err := p.Names()
	if err != nil {
		return nil, err
	}
	examples := savedNames(p.Path, names)
	examples.All = p.Len() + p.LeftOut
	if names == nil {
		names, examples.Name, examples.Doubt, examples.Len = make([]string, p.Len()), nil, nil, p.Len()
		if !groups.ByRow(how) {
			return nil, console.Usagef("--by TABLE.csv:COLUMN, with a row for each example; or give predictions that score wrote as "+
				".csv, .jsonl or .parquet, which have paths", "--by %s: the predictions have no paths that name the groups", how)
		}
	}
	of, err := groups.Parse(how, examples)
	if _, bad := errors.AsType[*groups.FormError](err); bad {
		return nil, console.Usagef("--by class, --by folder, or such as --by '/(site[0-9]+)_'", "--by: %w", err)
	}
	if err != nil {
		return nil, open.WrongGroups(fmt.Errorf("--by: %w", err))
	}
	return func(k int) string { return of(p.Rows[k], names[k]) }, nil
}

// guaranteeGroups returns the groups of examples that a guarantee has thresholds for, or nil without such. given are those of
// --groups report=HOW, which come first.
func guaranteeGroups(g *guarantee.Guarantee, given func(i int, name string) string,
	examples keys.Examples) (func(i int, name string) string, error) {
	if given != nil || g.Empty() || g.Coverage == nil || g.Coverage.By == "" || g.Coverage.By == guarantee.ByClass {
		return given, nil
	}
	of, err := groups.Parse(g.Coverage.By, examples)
	if err != nil {
		return nil, console.BadInput(fmt.Errorf("the guarantee has thresholds by %s: %w", g.Coverage.By, err),
			"say where the groups of this data stand: --groups report=HOW")
	}
	return of, nil
}

// dataOf says which data the predictions at a path are of.
func dataOf(p *calibration.Predictions) (d guarantee.Data, err error) {
	d = guarantee.Data{Name: filepath.Base(p.Path), SHA256: p.SHA256, Examples: p.Len()}
	info, err := os.Stat(p.Path)
	if err != nil {
		return d, console.BadInput(err)
	}
	d.Date = info.ModTime().UTC().Format(time.DateOnly)
	if beside, err := summary.ReadSidecar(p.Path + summary.Suffix); err == nil {
		d.Made = ensemble.MadeWith(beside.Parameters)
		for _, s := range beside.Sources {
			d.Sources = append(d.Sources, s.SHA256)
		}
	}
	return d, nil
}

// checkCarrier fails if the ensemble cannot carry the result. A calibration would change the predictions that a guarantee was
// chosen for. Data that chose a calibration must not choose a guarantee.
func (job *calibrationJob) checkCarrier(a *app, e *ensemble.Ensemble) error {
	if !e.Guarantee.Empty() && (job.Method != calibration.None || job.threshold.given && job.Criterion.Name != detect.ByRisk) {
		return console.BadInput(fmt.Errorf("%s: guarantees something of its predictions as they are, and they would change", e.Path),
			"calibrate the ensemble that sample wrote, and choose the guarantee after that")
	}
	if !(job.Guarantees() || job.Criterion.Name == detect.ByRisk) {
		return nil
	}
	if job.Criterion.Name == detect.ByRisk && e.Threshold > 0 {
		return console.BadInput(fmt.Errorf("%s: has a threshold, %g, and a guaranteed risk is of the most probable class",
			e.Path, e.Threshold))
	}
	switch own := &job.Guarantee.Data; {
	case e.FittedOn != nil && own.Shares(e.FittedOn):
		return console.BadInput(fmt.Errorf("%s: these examples chose the calibration of %s (%s), so that no guarantee from them holds",
			job.of, e.Path, e.FittedOn.Name),
			"give predictions of other examples", "or choose both at once, on two halves: add --method temperature, and give "+
				"the ensemble that is not calibrated")
	case e.FittedOn == nil && e.Calibration != nil:
		a.Warnf("%s: nothing says which data chose its calibration. The guarantee holds only if these are others", e.Path)
	}
	return nil
}

// guaranteed stores what was chosen in the ensemble. A guarantee of an earlier run that was not chosen again stays.
func (job *calibrationJob) guaranteed() error {
	if err := job.found.NoAnswers(); err != nil {
		return console.BadInput(fmt.Errorf("%s: %w", job.of, err))
	}
	g := job.found.Guarantee()
	if g == nil {
		return nil
	}
	if old := job.carrier.Guarantee; old != nil {
		g.Coverage, g.Answers = cmp.Or(g.Coverage, old.Coverage), cmp.Or(g.Answers, old.Answers)
	}
	if why := g.Void(guarantee.Made{}); why != nil {
		job.Warnf("%s: the guarantee holds for predictions that are made like these, and is void for others: %s", job.of,
			strings.Join(why, "; "))
	}
	job.carrier.Guarantee = g
	return nil
}

// checkCoverage refuses a coverage that the predictions do not allow.
func (job *calibrationJob) checkCoverage() error {
	if !job.Guarantees() {
		return nil
	}
	if job.save != "" {
		return console.Usagef("leave out --save: score writes sets with the ensemble", "--save: is not with --coverage")
	}
	if err := job.CheckGuarantee(); err != nil {
		hint := ""
		if no, ok := errors.AsType[*guarantee.Impossible](err); ok {
			hint = no.Instead
		}
		return console.Usagef(hint, "--coverage: %w", err)
	}
	if job.Criterion.Name == detect.ByRisk {
		if _, ok := job.Fit.Task.(task.Evident); !ok || job.Fit.Stored() {
			return console.Usagef("leave out --threshold", "--threshold risk: is of one answer for each example, and there are %s",
				job.Fit.Task.About().Size)
		}
	}
	return nil
}
