package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/keys"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
)

func mergeCommand(a *app) *command {
	o := &mergeOptions{app: a}
	return &command{
		name:  "merge",
		usage: "make one file of the parts that score --part wrote",
		args:  "[PART...]",
		description: `Writes the same file that one run of score writes, and FILE.meta.json. The parts are those of OUT (OUT.part-0000-of-0050
and so on), or the files that are named, in any order. It needs no network, no data and no ONNX Runtime.

   swagwrap score --part 3/50 -o predictions.csv ensemble.safetensors images/   # and 0 to 49 of 50
   swagwrap merge -o predictions.csv

If parts are missing or damaged, nothing is written. The exit code is 4, and the error lists them as Slurm's --array takes them.`,
		Table: flags.Join(flags.Output(&o.output), flags.Table{groupsRow(&o.groups), nextLabels(&o.next)}),
		run: func(ctx context.Context, args []string) error {
			o.parts = args
			return o.merge(ctx)
		},
	}
}

// mergeOptions are the values of merge's command line.
type mergeOptions struct {
	*app
	parts  []string // the files of parts; none means those of the output
	output flags.OutputOptions
	groups string
	next   int // rows to label next, or 0
}

func (o *mergeOptions) merge(ctx context.Context) error {
	output := o.output.Path
	if file.IsStdout(output) {
		return console.Usagef("name a file: -o predictions.csv", "merge does not write to standard output")
	}
	format, err := predictions.Format(output)
	if err != nil {
		return console.Usagef("say where the result goes: -o predictions.csv", "%w", err)
	}
	out, err := console.CreateOutput(output, o.output.Force)
	if err != nil {
		return err
	}
	defer out.Abort()
	paths, err := o.findParts()
	if err != nil {
		return err
	}
	parts, err := o.readParts(output, paths)
	if err != nil {
		return err
	}
	t, schema, err := predictions.PartSchema(&parts[0].Head)
	if err != nil {
		return console.BadInput(file.Error(parts[0].Path, err))
	}
	if format == ".npz" && !hasOutcomes(t, schema) {
		return console.BadInput(fmt.Errorf("%s: has no probabilities, which %s needs", parts[0].Path, output),
			"score the parts with --probs, or with -o "+filepath.Base(output))
	}
	failed := 0
	for _, p := range parts {
		failed += p.Errors
	}
	about := new(summary.Sidecar)
	if err := json.Unmarshal(parts[0].About, about); err != nil {
		return console.BadInput(file.Error(parts[0].Path, err))
	}
	examples, err := namesOf(parts, schema, o.groups+byOf(about.Guarantee))
	if err != nil {
		return err
	}
	g, err := grouping(o.groups, examples, nil, t.About().Name)
	if err != nil {
		return err
	}
	sum := summary.New(t, schema, about.Drift, about.Expected, about.Blocks, g)
	if err := chooseNext(sum, t, o.next); err != nil {
		return err
	}
	of, err := guaranteeGroups(about.Guarantee, g.Report, examples)
	if err != nil {
		return err
	}
	sum.Realised = guarantee.NewRealised(about.Guarantee, ensemble.MadeWith(parts[0].Parameters), t, schema.Columns, of)
	each, err := sum.Corrected(about.Shares, t, schema, about.Threshold, func(f func(*records.Row) error) error {
		for _, p := range parts {
			if err := schema.InOrder(p.Part.Rows(), p.Each)(f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return console.BadInput(err)
	}
	if err := writeRows(ctx, out, format, schema, sum.Add, each); err != nil {
		return err
	}
	about.Command, about.Format, about.Columns, about.Rows, about.Errors, about.Parameters = os.Args, format, schema.Header(),
		parts[0].Part.All, failed, parts[0].Parameters
	about.Fill(sum)
	beside, err := writeSidecar(about, output)
	if err != nil {
		return err
	}
	if err := console.Commit(beside, out); err != nil {
		return err
	}
	o.Logf("%s: %s of %s", output, report.Plural(sum.Rows, "example"), report.Plural(len(parts), "part"))
	if err := o.tell(output, sum); err != nil {
		return err
	}
	if sum.Labelled > 0 && !task.Large(t) && hasOutcomes(t, schema) {
		o.Next(console.Next(output, kind.Predictions)...)
	}
	return nil
}

// namesOf returns the examples of all parts. It reads their names only if a table may have their groups.
func namesOf(parts []*records.Saved, schema *predictions.Schema, groups string) (of keys.Examples, err error) {
	of.Len = parts[0].Part.All
	if !strings.Contains(groups, ":") {
		return of, nil
	}
	var names []string
	for _, p := range parts {
		if err := schema.InOrder(p.Part.Rows(), p.Each)(func(r *records.Row) error {
			names = append(names, r.Path)
			return nil
		}); err != nil {
			return of, console.BadInput(err)
		}
	}
	if len(names) != of.Len {
		return of, nil
	}
	return savedNames(parts[0].Path, names), nil
}

func savedNames(path string, names []string) keys.Examples {
	return keys.Examples{Len: len(names), Name: func(i int) string {
		return names[i]
	}, Doubt: func() *fileorder.Doubt { return fileorder.OfRows(path, names) }}
}

// byOf returns what names the groups of a guarantee, or "".
func byOf(g *guarantee.Guarantee) string {
	if g == nil || g.Coverage == nil {
		return ""
	}
	return g.Coverage.By
}

// findParts lists the files of the parts to merge.
func (o mergeOptions) findParts() ([]string, error) {
	if len(o.parts) > 0 {
		return o.parts, nil
	}
	paths, err := records.PartNames(o.output.Path)
	if err != nil {
		return nil, console.BadInput(err)
	}
	if len(paths) == 0 {
		return nil, console.Usagef("name them: swagwrap merge -o OUT PART...", "%s: has no parts, such as %s", o.output.Path,
			filepath.Base(records.PartName(o.output.Path, 0, 50)))
	}
	return paths, nil
}

// readParts reads the heads of all parts, and every row once, so that it finds damaged parts before the merge begins.
// A damaged part counts as missing. readParts returns the parts in order. It fails if a part is missing, or if a part
// is of another run. Its memory grows with the parts that exist, not with the missing ones.
func (o *mergeOptions) readParts(output string, paths []string) ([]*records.Saved, error) {
	var parts []*records.Saved
	var broken error // why the first damaged part cannot be read
	var processors []string
	for _, path := range paths {
		p, err := predictions.ReadPart(path)
		switch {
		case errors.Is(err, records.ErrDamaged) && isOther(path):
			return nil, open.WrongKind(err, path, kind.ScorePart)
		case errors.Is(err, records.ErrDamaged), errors.Is(err, fs.ErrNotExist):
			broken = cmp.Or(broken, err)
			continue
		case err != nil:
			return nil, console.BadOutput(err)
		}
		if p.Part.Index > 0 {
			p.About = nil // part 0 has the same
		}
		if len(parts) > 0 {
			first := parts[0]
			if n, of := p.Part.Of, first.Part.Of; n != of {
				return nil, console.BadInput(fmt.Errorf("%s: is one of %d parts, and %s one of %d", path, n, first.Path, of))
			}
			if d := p.Unlike(first); d != nil {
				return nil, console.BadInput(fmt.Errorf("%s: is not of the same run as %s: %s", path, first.Path, strings.Join(d, "; ")))
			}
		}
		parts = append(parts, p)
		if !slices.Contains(processors, p.Processor) {
			processors = append(processors, p.Processor)
		}
	}
	if len(parts) == 0 {
		return nil, console.BadInput(broken)
	}
	if err := inOrder(output, parts, broken); err != nil {
		return nil, err
	}
	o.warnProcessors("parts were scored", processors)
	return parts, nil
}

// inOrder sorts the parts. It fails if a part occurs twice or is missing, or if two parts do not adjoin. broken is the
// error of a part that cannot be read, or nil.
func inOrder(output string, parts []*records.Saved, broken error) error {
	slices.SortFunc(parts, func(p, q *records.Saved) int {
		return cmp.Or(p.Part.Index-q.Part.Index, strings.Compare(p.Path, q.Path))
	})
	of, all := parts[0].Part.Of, parts[0].Part.All
	missing, ranges := 0, []string(nil)
	gap := func(from, end int) {
		switch n := end - from; {
		case n <= 0:
			return
		case n == 1:
			ranges = append(ranges, strconv.Itoa(from))
		default:
			ranges = append(ranges, fmt.Sprintf("%d-%d", from, end-1))
		}
		missing += end - from
	}
	before, path := records.Part{Index: -1}, ""
	for _, part := range parts {
		p := part.Part
		switch {
		case p.Index == before.Index:
			return console.BadInput(fmt.Errorf("%s: is part %d, and so is %s", part.Path, p.Index, path))
		case p.All != all, p.Index == before.Index+1 && p.First != before.End, p.Index == of-1 && p.End != all:
			return console.BadInput(fmt.Errorf("%s: has %d to %d of %d, want from %d of %d", part.Path, p.First, p.End, p.All,
				before.End, all))
		}
		gap(before.Index+1, p.Index)
		before, path = p, part.Path
	}
	gap(before.Index+1, of)
	if missing == 0 {
		return nil
	}
	array, why := strings.Join(ranges, ","), ""
	if broken != nil {
		why = fmt.Sprintf(" (%v)", broken)
	}
	again := fmt.Sprintf("run them again: sbatch --array=%s …, or the same command of score with --part I/%d for each", array, of)
	return console.Missing(again, "%s: %s of %d missing: --array=%s%s", output, report.Plural(missing, "part"), of, array, why)
}

// isOther reports whether a file that cannot be read as a part has another kind, and is not just damaged.
func isOther(path string) bool {
	is := kind.Detect(path)
	return is != kind.ScorePart && is != kind.Unknown && is != kind.WorkFile
}

// warnProcessors warns if the work was done on several kinds of processors. done describes the work.
func (a *app) warnProcessors(done string, kinds []string) {
	if len(kinds) > 1 {
		a.Warnf("%s on %s, which may differ in the last bits: %s", done, report.Plural(len(kinds), "kind of processor"),
			strings.Join(kinds, ", "))
	}
}

// hasOutcomes reports whether rows have all columns for the averaged outcomes of a task.
func hasOutcomes(t task.Task, s *predictions.Schema) bool {
	options := s.Want
	options.Outcomes = true
	for _, want := range t.Columns(options) {
		if !slices.ContainsFunc(s.Columns, func(c task.Column) bool { return c.Name == want.Name }) {
			return false
		}
	}
	return true
}
