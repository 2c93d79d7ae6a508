package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/compare/show"
	"github.com/swagwrap/swagwrap/internal/study/shift"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/swag"
)

func compareCommand(a *app) *command {
	o := &compareOptions{studyOptions: studyOptions{app: a}}
	return &command{
		name:  "compare",
		usage: "compare SWAG with SGD, SWA, temperature scaling and other methods",
		args:  "POSTERIOR... TEST",
		description: `Compares methods on labelled test data, and prints a table and a verdict. The methods are the last SGD checkpoint, SWA and
SWAG, each without and with a temperature, and those that --methods lists.

   swagwrap compare --bn-data train.npz --val val.npz posterior.safetensors test.npz

Temperatures are fitted on --val. Without it they are fitted on one half of the test data and applied to the other.
The verdict comes first. A terminal shows the methods that it is about, and all of them with -v.
The table "step by step" is a price list. It shows what a temperature, SWA, SWAG and tuned settings change, step by step. NLL is the mean
for each example in nats. The interval of a row is for the difference of these networks to SWA-Temp on new examples.
"other seeds" is the standard error over other draws. "very many members" is the NLL that very many members would have.
--max-members 300 draws more members until their error is small. "at best T" is the NLL with a temperature that is fitted on one
half of the test data and applied to the other, as a mean over 10 random splits. The verdict is adjusted for the number of tests
(Holm's procedure).

Several posteriors, such as those of runs with different seeds, add three methods: deep ensembles of their last checkpoints and
of their SWAs, and MultiSWAG, which has as many members as SWAG. The other rows are then of the first posterior. --each-run also
compares the methods in each posterior, and gives intervals for other runs of training. --methods all adds isotropic: noise
of SWAG's size without its shape.

   swagwrap compare --bn-data train.npz --val val.npz seed-1.safetensors seed-2.safetensors seed-3.safetensors test.npz

--val also chooses the scale of SWAG: 0.25, 0.5 (the paper's), 1 or 2, each with its temperature. Few members try them first. A
scale other than 0.5 gets a row of its own, and a line says what the choice cost. --scale turns it off.

--val also shows whether another average is better than that of all checkpoints: of the last 3, 5, 10 or 20, or one with weights
that rise towards the end. A line says so if the labels prove it, with the command. try follows it. --methods turns it off.

--tune FILE tries scales, ranks and covariances of SWAG on --val, as sweep does, each with a temperature of its own. It adds a
row for the best of them, and writes them to FILE for sample. Test data does not choose.

   swagwrap compare --tune settings.json --bn-data train.npz --val val.npz posterior.safetensors test.npz
   swagwrap sample -o ensemble.safetensors --settings settings.json --bn-data train.npz posterior.safetensors`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.args, o.posteriors, o.test = args, args[:len(args)-1], args[len(args)-1]
			return o.compare(ctx)
		},
	}
}

// compareOptions are the values of compare's command line.
type compareOptions struct {
	studyOptions
	posteriors []string
	test       string
	groups     string
	threshold  chosenThreshold
	allMetrics bool
	maxMembers int // 0 without --max-members
	eachRun    bool
	save       string
	shift      string
	adapt      open.AdaptOptions
}

func (o *compareOptions) rows() flags.Table {
	o.Table = flags.Join(flags.Table{
		flags.Labels(&o.Data.Labels),
		groupsRow(&o.groups),
	}, flags.OutputNameAndTask(&o.Network), flags.Table{
		criterion(&o.threshold, "of the task binary: predict class 1 where its probability is `T` or more, or by what a criterion "+
			"chooses on --val: "),
		flags.Parsed(flags.Row{
			Name:    "metrics",
			Usage:   "print the `SET` of metrics: main, or all, which adds further ones, and each method with scalings of its own",
			Default: "main",
		}, &o.allMetrics, func(s string) (bool, error) { return s == "all", word.Check(s, "main", "all") }),
		flags.Integer(flags.Row{
			Name: "max-members",
			Usage: "draw more members of SWAG, up to `S`, until the error of the draws is below half of the error that the test " +
				"examples leave",
			Not: "outcomes",
		}, &o.maxMembers, 1, swag.MaxMembers-1),
		flags.JSON(&o.report, "print JSON instead of a table: everything, unrounded"),
		flags.Bool(flags.Row{
			Name:  "each-run",
			Usage: "also compare the methods in each of several posteriors, which are runs of training, with intervals for new runs",
		}, &o.eachRun),
		flags.Text(flags.Row{
			Name:  "tune",
			Usage: "choose SWAG's settings on --val, show them on the test data, and write them to `FILE.json` for sample --settings",
			Not:   "outcomes part",
		}, &o.Tune),
		flags.Parsed(flags.Row{
			Name: "shift",
			Usage: "also damage test data by `CORRUPTIONS`, in five severities: common, all, or names with commas; then maybe " +
				"severities=1,3,5 examples=1000 each=1",
		}, &o.shift, func(s string) (string, error) {
			_, err := shift.Parse(s)
			return s, err
		}),
		flags.Text(flags.Row{
			Name:  "save",
			Usage: "write labels and each method's probabilities to `FILE.npz`",
			Not:   "outcomes part",
		}, &o.save),
	}, flags.Expect(&o.Expect, ""), flags.Adapt(&o.adapt, "; compare adds rows for it", &o.shift), flags.Report(&o.report), o.storeRows(),
		flags.Methods(&o.StudyOptions, "auto"))
	o.Row("adapt").Then = func() error {
		o.NeedsOutcomes = o.First("outcomes")
		return cmp.Or(o.finish(), flags.RefuseNoTarget(o.adapt))
	}
	return o.Table
}

// check refuses options that contradict each other.
func (o compareOptions) check() error {
	switch by := o.threshold.by; {
	case by.Name == detect.ByRisk:
		return console.Usagef("swagwrap calibrate --threshold "+by.String()+" PREDICTIONS", "--threshold %v is for calibrate", by)
	case by.Name != "" && o.Validation == "":
		return console.Usagef("--val FILE: the threshold of each method is chosen there", "--threshold %v without validation data", by)
	case o.maxMembers > 0 && o.maxMembers < o.Members:
		return console.Usagef("", "--max-members %d: below --members %d", o.maxMembers, o.Members)
	case o.eachRun && len(o.posteriors) < 2:
		return console.Usagef("give the posterior of each run of training", "--each-run with one posterior: a spread over runs needs two")
	}
	return nil
}

func (o *compareOptions) compare(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(frugal))
	pages, err := o.openPages()
	if err != nil {
		return err
	}
	defer pages.Abort()
	cmp := &compare.Comparison{
		Scalings:   o.allMetrics || o.report.JSON,
		AllMetrics: o.allMetrics,
		Threshold:  o.threshold.value,
		By:         o.threshold.by,
		MaxMembers: o.maxMembers,
		EachRun:    o.eachRun,
	}
	saved, err := openSaved(o.save, o.report.Force)
	if err != nil {
		return err
	}
	defer saved.out.Abort()
	settings, err := openTuned(o.Tune, o.Validation, o.report.Force)
	if err != nil {
		return err
	}
	defer settings.out.Abort()

	in, err := o.OpenStudy(ctx, o.StudyOptions, o.posteriors, true)
	if err != nil {
		return err
	}
	defer in.Close()
	in.Full, in.Tries = o.allMetrics, in.Validation != nil
	if err := open.ThresholdFits(o.threshold.given, in.Networks()[0].Posterior.Card.Task); err != nil {
		return err
	}
	if cmp.Test, err = o.OpenOf(in, o.test, o.Data.Labels.Main, true); err != nil {
		return err
	}
	if cmp.Grouping, err = grouping(o.groups, dataset.Keyed(cmp.Test), cmp.Test, in.Networks()[0].Posterior.Card.Task); err != nil {
		return err
	}
	if err := o.openShift(cmp, in); err != nil {
		return err
	}
	target, err := o.openAdapt(cmp, in)
	if err != nil {
		return err
	}
	if in.Validation == nil && !in.Networks()[0].Large() {
		o.Warnf("without --val, temperatures are fitted on one half of the test data and applied to the other")
	}
	run, err := o.startStudy(ctx, in, in.Draws(), in.Members, open.Probe{Data: cmp.Test, Path: o.test, Labelled: true})
	if err != nil {
		return err
	}
	if target != nil {
		if err := target.CheckAverage(ctx, run.Run, in); err != nil {
			return err
		}
	}
	if err := o.tune(ctx, settings, in, run.Run); err != nil {
		return err
	}
	window, err := o.chooseWindow(ctx, cmp, in, run.Run)
	if err != nil {
		return err
	}
	scale, err := o.chooseScale(ctx, in, run.Run)
	if err != nil {
		return err
	}
	cmp.TestPath, cmp.Measured = o.test, in.Measured
	cmp.Inputs, cmp.Validation, cmp.Save = in.Inputs, in.Validation, saved.add
	if page := o.report.Page; page != "" {
		cmp.Folder, cmp.Between = filepath.Dir(page), o.Between
	}
	cmp.Tuned, cmp.Settings, cmp.Spell = window+scale+settings.String(), o.Tune, o.spelling.Line
	if err := o.tellShift(ctx, cmp, run); err != nil {
		return err
	}
	bar := o.studyBar(ctx, "compare", run.shard, cmp.Images())
	if !o.report.JSON {
		cmp.Scored = o.showFirst(bar)
	}
	found, err := runStudy(ctx, o.app, o.studyOptions, run, bar, cmp.Fill, cmp.Run)
	if err != nil || found == nil {
		return err
	}
	found.BatchNorm = in.BatchNorm.Findings
	for _, note := range found.Notes {
		o.Warnf("%s", note)
	}
	if err := saved.finish(cmp.Test.Labels(), cmp.Shift); err != nil {
		return err
	}
	tuned, err := settings.finish(found)
	if err != nil {
		return err
	}
	return o.Show(pages, &found.BatchNorm, show.Result(found), saved.out, tuned)
}

// showFirst shows the rows of single networks below the bar while the others are computed.
func (o *compareOptions) showFirst(bar *console.Bar) func(*compare.Method) {
	var methods []*compare.Method
	return func(m *compare.Method) {
		if m.Networks > 1 || m.StaleBN {
			return
		}
		methods = append(methods, m)
		var rows strings.Builder
		show.First(methods).WriteText(&rows, o.Messages()) // writing to memory cannot fail
		bar.Below(rows.String())
	}
}

func (o compareOptions) openShift(cmp *compare.Comparison, in *open.Study) error {
	if o.shift == "" {
		return nil
	}
	if in.Validation == nil {
		return console.Usagef("--val FILE: temperatures are fitted there",
			"--shift without validation data: a temperature that knows the damaged data shows nothing")
	}
	damage, err := shift.Parse(o.shift)
	if err != nil {
		return console.Usagef("", "--shift: %w", err)
	}
	cmp.Shift, damage.Memory = &damage.Damaged, o.Runtime.Memory
	_, text := dataset.CutOf(cmp.Test)
	switch {
	case text && cmp.Unit != nil:
		return console.Usagef("leave out unit=, or --shift",
			"--shift damages documents of the text, so these are the units of chance, and --groups unit= has others")
	case !text && in.Networks()[0].Traits().Text:
		return console.BadInput(fmt.Errorf("%s: --shift: windows of a text, and damage moves the tokens that they predict", o.test),
			"give the whole text: a text file, or an array with one row of token numbers")
	}
	if err := damage.Open(cmp.Test, in.Validation, in.Networks()[0].Large(), in.Seed); err != nil {
		return console.BadInput(fmt.Errorf("%s: --shift: %w", o.test, err))
	}
	return nil
}

// openAdapt prepares the rows of adapted methods. With --shift they adapt to the damaged data that they predict, each corruption
// by itself. It returns the open target of --adapt, or nil.
func (o *compareOptions) openAdapt(cmp *compare.Comparison, in *open.Study) (target *open.Adaptation, err error) {
	n := in.Networks()[0]
	if o.adapt.Data == "" && cmp.Shift == nil {
		if i := slices.IndexFunc(in.Asked, baseline.Adapts); i >= 0 && o.Methods != nil && !o.All {
			o.Warnf("--methods %s: left out, it needs data that differ: --shift or --adapt", in.Asked[i])
		}
		return nil, nil
	}
	adapt := &baseline.Adapt{Weight: o.adapt.Weight}
	if o.adapt.Data != "" {
		d := o.Data
		d.Labels = open.Labels{}
		if target, err = open.OpenAdaptation(o.Opener, o.adapt, d, in.Networks(), in.Seed); err != nil {
			return nil, err
		}
		adapt.Target = target.Target
	} else if n.Large() || cmp.Test.Len() < batchnorm.LeastTarget || cmp.Shift.Examples < batchnorm.LeastTarget {
		return nil, nil
	}
	if s := cmp.Shift; s != nil {
		adapt.Parts = make([][][]int, 1+len(s.Sets))
		for k := range s.Sets {
			if s.Texts {
				continue
			}
			parts := make([][]int, len(s.Corruptions))
			for j := range s.Rows {
				parts[j%len(parts)] = append(parts[j%len(parts)], j)
			}
			adapt.Parts[1+k] = parts
		}
	}
	in.Adapt = adapt
	return target, nil
}

// tellShift says what --shift costs, before anything is computed.
func (o *compareOptions) tellShift(ctx context.Context, cmp *compare.Comparison, run sharedRun) error {
	if cmp.Shift == nil {
		return nil
	}
	without := *cmp
	without.Shift = nil
	all, others, stored := cmp.Images(), without.Images(), ""
	damaged := all - others
	if run.Store != nil && !cmp.Runs[0].Network.Large() {
		var err error
		if damaged, others, err = cmp.Left(ctx, run.Run, run.shard); err != nil {
			return console.BadInput(err)
		}
		if damaged+others < all {
			stored = " The store has the rest."
		}
	}
	networks := "Networks"
	if run.shard != nil {
		networks = "Networks of this part"
	}
	line := fmt.Sprintf("--shift: %s, %s of each at %s. %s see %s %ss for it and %s without it.%s",
		report.Plural(cmp.Shift.Examples, cmp.Shift.Unit(cmp.Test)),
		report.Plural(cmp.Shift.Each, "corruption"), cmp.Shift.Named(), networks, report.Thousands(int(damaged)), dataset.Unit(cmp.Test),
		report.Thousands(int(others)), stored)
	if damaged > 0 {
		seconds, err := cmp.ShiftSeconds(ctx, run.Engine, damaged)
		if err != nil {
			return console.BadInput(err)
		}
		line += fmt.Sprintf(" It takes about %s of CPU time.", span(seconds))
	}
	o.Logf("%s", line)
	return nil
}

// savedPredictions is the file of --save.
type savedPredictions struct {
	out     *console.Output // nil without --save
	archive *predictions.Archive
	taken   map[string]bool
}

func openSaved(path string, force bool) (*savedPredictions, error) {
	if path == "" {
		return &savedPredictions{}, nil
	}
	if !strings.HasSuffix(strings.ToLower(path), ".npz") {
		return nil, console.Usagef("", "--save %s: want a name that ends in .npz", path)
	}
	out, err := console.CreateOutput(path, force)
	if err != nil {
		return nil, err
	}
	return &savedPredictions{out, predictions.NewArchive(out), make(map[string]bool)}, nil
}

// add writes the outcomes of a method under its key. It appends a number if the key already exists.
func (s *savedPredictions) add(key string, outcomes []float64, width int) error {
	if s.out == nil {
		return nil
	}
	name := "probs_" + strings.ReplaceAll(key, "-", "_")
	for i, first := 2, name; s.taken[name]; i++ {
		name = fmt.Sprintf("%s_%d", first, i)
	}
	s.taken[name] = true
	return console.BadOutput(s.archive.Floats(name, outcomes, len(outcomes)/width, width))
}

func (s *savedPredictions) finish(labels target.Target, damaged *dataset.Damaged) (err error) {
	if s.out == nil {
		return nil
	}
	if damaged != nil {
		corruptions := make([]int, len(damaged.Rows))
		for j := range corruptions {
			corruptions[j] = j % len(damaged.Corruptions)
		}
		err = errors.Join(s.archive.Ints("shift_examples", damaged.Rows, len(damaged.Rows)),
			s.archive.Ints("shift_corruptions", corruptions, len(corruptions)))
	}
	if err == nil {
		err = s.archive.Ints("labels", labels.Classes, labels.Len())
	}
	if err == nil && labels.Width > 0 {
		err = s.archive.Floats("labels", labels.Values, labels.Len(), labels.Width)
	}
	if err != nil {
		return console.BadOutput(err)
	}
	return console.BadOutput(s.archive.Close())
}
