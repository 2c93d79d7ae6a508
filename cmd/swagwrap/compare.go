package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/shift"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
	"github.com/swagwrap/swagwrap/swag"
)

func (a *app) compareCommand() *cli.Command {
	return &cli.Command{
		Name:      "compare",
		Usage:     "compare SWAG with SGD, SWA, temperature scaling and other methods",
		ArgsUsage: "POSTERIOR... TEST",
		Description: `Compares methods on labelled test data, and prints a table and a verdict. The methods are the last SGD checkpoint, SWA and
SWAG, each without and with a temperature, and those that --methods lists.

   swagwrap compare --bn-data train.npz --val val.npz posterior.safetensors test.npz

Temperatures are fitted on --val. Without it they are fitted on one half of the test data and applied to the other.
The first table is a price list. It shows what a temperature, SWA, SWAG and tuned settings change, step by step. NLL is the mean
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

--tune FILE tries scales, ranks and covariances of SWAG on --val, as sweep does, each with a temperature of its own. It adds a
row for the best of them, and writes them to FILE for sample. Test data does not choose.

   swagwrap compare --tune settings.json --bn-data train.npz --val val.npz posterior.safetensors test.npz
   swagwrap sample -o ensemble.safetensors --settings settings.json --bn-data train.npz posterior.safetensors`,
		Flags: flags.Join([]cli.Flag{
			flags.LabelsFlag, groupsFlag,
			criterionFlag("of the task binary: predict class 1 where its probability is `T` or more, or by what a criterion chooses on --val: "),
			flags.OneOf(&cli.StringFlag{Name: "metrics", Usage: "print the `SET` of metrics: main, or all, which adds further ones, and each method with scalings of its own", Value: "main"}, "main", "all"),
			flags.Whole(1, swag.MaxMembers-1, &cli.IntFlag{Name: "max-members", Usage: "draw more members of SWAG, up to `S`, until the error of the draws is below half of the error that the test examples leave"}),
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of a table: everything, unrounded"},
			&cli.BoolFlag{Name: "each-run", Usage: "also compare the methods in each of several posteriors, which are runs of training, with intervals for new runs"},
			&cli.StringFlag{Name: "tune", Usage: "choose SWAG's settings on --val, show them on the test data, and write them to `FILE.json` for sample --settings"},
			flags.Checked(&cli.StringFlag{Name: "shift", Usage: "also damage test data by `CORRUPTIONS`, in five severities: common, all, or names with commas; then maybe severities=1,3,5 examples=1000 each=1"}, shift.Parse),
			&cli.StringFlag{Name: "save", Usage: "write labels and each method's probabilities to `FILE.npz`"},
		}, flags.ReportFlags, storeFlags, flags.MethodFlags),
		Action: a.withPages(a.compare),
	}
}

func (a *app) compare(c *cli.Context, pages *flags.Pages) error {
	defer debug.SetGCPercent(debug.SetGCPercent(frugal))
	posteriors, test := c.Args().Slice()[:c.NArg()-1], c.Args().Get(c.NArg()-1)
	allMetrics := c.String("metrics") == "all"
	cmp := &compare.Comparison{Scalings: allMetrics || c.Bool("json"), AllMetrics: allMetrics}
	cmp.Threshold, cmp.By = threshold(c)
	if cmp.By.Name == detect.ByRisk {
		return flags.Usagef("swagwrap calibrate --threshold "+cmp.By.String()+" PREDICTIONS", "--threshold %v is for calibrate", cmp.By)
	}
	if cmp.By.Name != "" && c.String("val") == "" {
		return flags.Usagef("--val FILE: the threshold of each method is chosen there", "--threshold %v without validation data", cmp.By)
	}
	if cmp.MaxMembers = c.Int("max-members"); c.IsSet("max-members") && cmp.MaxMembers < c.Int("members") {
		return flags.Usagef("", "--max-members %d: below --members %d", cmp.MaxMembers, c.Int("members"))
	}
	if cmp.EachRun = c.Bool("each-run"); cmp.EachRun && len(posteriors) < 2 {
		return flags.Usagef("give the posterior of each run of training", "--each-run with one posterior: a spread over runs needs two")
	}
	saved, err := openSaved(c)
	if err != nil {
		return err
	}
	defer saved.out.Abort()
	settings, err := openTuned(c)
	if err != nil {
		return err
	}
	defer settings.out.Abort()

	in, err := a.OpenStudy(c, posteriors, true)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := thresholdFits(c, in.Networks()[0].Posterior.Card.Task); err != nil {
		return err
	}
	if in.Networks()[0].Axis() != 0 {
		if err := flags.Refuse(c, "leave it out", "--*: is not for networks that score pixels or tokens, whose outcomes do not fit into memory", "tune", "save", "max-members", "part", "threshold"); err != nil {
			return err
		}
	}
	if cmp.Test, err = in.Open(c, test, flags.Labels(c, ""), true); err != nil {
		return err
	}
	if cmp.Grouping, err = grouping(c, cmp.Test, cmp.Test.Len(), in.Networks()[0].Posterior.Card.Task); err != nil {
		return err
	}
	if err := a.shift(c, cmp, in, test); err != nil {
		return err
	}
	if in.Validation == nil && in.Networks()[0].Axis() == 0 {
		a.Warnf(c, "without --val, temperatures are fitted on one half of the test data and applied to the other")
	}
	engine, err := a.startStudy(c, in, in.Draws(), in.Members, cmp.Test, test, "save", "tune")
	if err != nil {
		return err
	}
	if err := a.tune(c, settings, in, engine); err != nil {
		return err
	}
	cmp.Inputs, cmp.Validation, cmp.Save = in.Inputs, in.Validation, saved.add
	if page := c.String("report"); page != "" {
		cmp.Folder = filepath.Dir(page)
	}
	cmp.Tuned, cmp.Settings, cmp.Recomputing, cmp.Reading = settings.String(), c.String("tune"), flags.AsAsked(c), flags.ReadAsAsked(c)
	if err := a.tellShift(c, cmp, engine); err != nil {
		return err
	}
	found, err := runStudy(a, c, engine, a.studyBar(c, engine, cmp.Images()), cmp.Fill, cmp.Run)
	if err != nil || found == nil {
		return err
	}
	found.BatchNorm = in.BatchNorm.BatchNorm
	for _, note := range found.Notes {
		a.Warnf(c, "%s", note)
	}
	if err := saved.finish(cmp.Test.Labels(), cmp.Shift); err != nil {
		return err
	}
	tuned, err := settings.finish(found)
	if err != nil {
		return err
	}
	return a.Show(c, pages, &found.BatchNorm, found, saved.out, tuned)
}

// shift reads --shift.
func (a *app) shift(c *cli.Context, cmp *compare.Comparison, in *inputs.Study, test string) (err error) {
	if !c.IsSet("shift") {
		return nil
	}
	if in.Validation == nil {
		return flags.Usagef("--val FILE: temperatures are fitted there", "--shift without validation data: a temperature that knows the damaged data shows nothing")
	}
	if cmp.Shift, err = shift.Parse(c.String("shift")); err != nil {
		return flags.Usagef("", "--shift: %w", err)
	}
	cmp.Shift.Memory = flags.Memory(c)
	_, text := dataset.CutOf(cmp.Test)
	switch {
	case text && cmp.Unit != nil:
		return flags.Usagef("leave out unit=, or --shift", "--shift damages documents of the text, so these are the units of chance, and --groups unit= has others")
	case !text && in.Networks()[0].Posterior.Card.Task == task.NextToken:
		return flags.BadInput(fmt.Errorf("%s: --shift: windows of a text, and damage moves the tokens that they predict", test), "give the whole text: a text file, or an array with one row of token numbers")
	}
	if err := cmp.Shift.Open(cmp.Test, in.Validation, in.Networks()[0].Axis() != 0, in.Seed); err != nil {
		return flags.BadInput(fmt.Errorf("%s: --shift: %w", test, err))
	}
	return nil
}

// tellShift says what --shift costs, before anything is computed.
func (a *app) tellShift(c *cli.Context, cmp *compare.Comparison, engine *infer.Engine) error {
	if cmp.Shift == nil {
		return nil
	}
	without := *cmp
	without.Shift = nil
	all, others, stored := cmp.Images(), without.Images(), ""
	damaged := all - others
	if engine.Store != nil && cmp.Runs[0].Network.Axis() == 0 {
		var err error
		if damaged, others, err = cmp.Left(c.Context, engine); err != nil {
			return flags.BadInput(err)
		}
		if damaged+others < all {
			stored = " The store has the rest."
		}
	}
	networks := "Networks"
	if engine.Shard != nil {
		networks = "Networks of this part"
	}
	line := fmt.Sprintf("--shift: %s, %s of each at %s. %s see %s %ss for it and %s without it.%s", report.Plural(cmp.Shift.Examples, cmp.Shift.Unit(cmp.Test)),
		report.Plural(cmp.Shift.Each, "corruption"), cmp.Shift.Named(), networks, report.Thousands(int(damaged)), dataset.Unit(cmp.Test), report.Thousands(int(others)), stored)
	if damaged > 0 {
		seconds, err := cmp.ShiftSeconds(c.Context, engine, damaged)
		if err != nil {
			return flags.BadInput(err)
		}
		line += fmt.Sprintf(" It takes about %s of CPU time.", span(seconds))
	}
	a.Logf(c, "%s", line)
	return nil
}

// savedPredictions is the file of --save.
type savedPredictions struct {
	out     *flags.Output // nil without --save
	archive *predictions.Archive
	taken   map[string]bool
}

func openSaved(c *cli.Context) (*savedPredictions, error) {
	path := c.String("save")
	if path == "" {
		return &savedPredictions{}, nil
	}
	if !strings.HasSuffix(strings.ToLower(path), ".npz") {
		return nil, flags.Usagef("", "--save %s: want a name that ends in .npz", path)
	}
	out, err := flags.CreateOutput(path, c.Bool("force"))
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
	return flags.BadOutput(s.archive.Floats(name, outcomes, len(outcomes)/width, width))
}

func (s *savedPredictions) finish(labels truth.Truth, damaged *shift.Data) (err error) {
	if s.out == nil {
		return nil
	}
	if damaged != nil {
		corruptions := make([]int, len(damaged.Rows))
		for j := range corruptions {
			corruptions[j] = j % len(damaged.Corruptions)
		}
		err = errors.Join(s.archive.Ints("shift_examples", damaged.Rows, len(damaged.Rows)), s.archive.Ints("shift_corruptions", corruptions, len(corruptions)))
	}
	if err == nil {
		err = s.archive.Ints("labels", labels.Classes, labels.Len())
	}
	if err == nil && labels.Width > 0 {
		err = s.archive.Floats("labels", labels.Values, labels.Len(), labels.Width)
	}
	if err != nil {
		return flags.BadOutput(err)
	}
	return flags.BadOutput(s.archive.Close())
}
