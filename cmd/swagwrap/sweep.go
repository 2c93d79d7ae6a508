package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/sweep"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/swag"
)

func sweepCommand(a *app) *command {
	o := &sweepOptions{studyOptions: studyOptions{app: a}}
	return &command{
		name:  "sweep",
		usage: "try other scales, ranks and numbers of members, and choose",
		args:  "POSTERIOR TEST",
		description: `Scores SWAG on labelled data with other scales, ranks and numbers of members than the paper's, and without recomputed
batch-norm statistics. All settings share their random numbers.

   swagwrap sweep --bn-data train.npz --val val.npz posterior.safetensors test.npz

Each setting is scored with its own temperature, because a scale can otherwise do what a temperature does. --val fits the
temperatures and chooses the setting with the lowest NLL. The test data then compares that setting with the paper's and with
SWA-Temp. Without --val each half of the test data chooses for the other half; a text needs --val. compare --tune chooses in the
same way.
Intervals are for other examples and other draws of the members. The test scores of other settings are hidden, so that nobody
chooses on test data.

If the choice is at the edge of what was tried, the sweep tries the next scales and ranks, at most four times. It says
what that costs. Scales and ranks that you give with --scale and --rank are tried alone.

--members auto draws as few members of the paper's setting as are as near to very many members as 30 independent ones, on the
test data. All settings then have as many.`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.args = args
			return o.sweep(ctx)
		},
	}
}

// sweepOptions are the values of sweep's command line.
type sweepOptions struct {
	studyOptions
	members       int // 0 for auto
	scales        []float64
	ranks, epochs []float64 // nil if the flag was not given
	extend        bool      // scales and ranks were not given
	folder        string    // where the checkpoints are now, or ""
	allTest       bool
	samples       int
}

func (o *sweepOptions) rows() flags.Table {
	numbers := flags.Numbers(0, flags.MaxExamples)
	o.Table = flags.Join(flags.Table{
		flags.Text(flags.Row{Name: "val", Usage: "choose on the labelled data in `FILE`"}, &o.Validation),
		flags.Labels(&o.Data.Labels),
		flags.Count(flags.Row{Default: flags.Usual}, &o.members, "with the paper's setting on the test data"),
		flags.Draws(flags.Row{}, &o.Antithetic, &o.Orthogonal),
		flags.Parsed(flags.Row{
			Name:    "scale",
			Usage:   "try the factors `ALPHA,...` of the covariance; 0 is SWA",
			Default: strings.ReplaceAll(strings.Trim(fmt.Sprint(sweep.UsualScales), "[]"), " ", ","),
			Hint:    "give numbers with commas between: --scale 0.25,0.5,1",
			Given:   &o.GivenScale,
		}, &o.scales, flags.Numbers(0, flags.MaxScale)),
		flags.Parsed(flags.Row{
			Name:   "rank",
			Usage:  "try the numbers `K,...` of columns; 0 is the diagonal alone",
			Preset: "0,2,5,10,20, as far as the posterior goes",
			Hint:   "give numbers of columns with commas between: --rank 0,5,20",
		}, &o.ranks, numbers),
		flags.Parsed(flags.Row{
			Name:  "epochs",
			Usage: "also show the posteriors of the first `N,...` checkpoints, by rank",
			Hint:  "give numbers of checkpoints with commas between: --epochs 5,10,20",
		}, &o.epochs, numbers),
		flags.Text(flags.Row{
			Name:  "checkpoints",
			Usage: "with --epochs: the posterior's checkpoints are now in `FOLDER`",
			Then:  o.complete,
		}, &o.folder),
		flags.Bool(flags.Row{
			Name:  "all-test",
			Usage: "show the test scores of every setting. Do not choose by them: that would be choosing on test data",
		}, &o.allTest),
		flags.Integer(flags.Row{
			Name:   "samples",
			Usage:  "score `N` test examples, chosen by the seed",
			Preset: "all",
		}, &o.samples, 0, flags.MaxExamples),
		flags.Seed(flags.Row{Usage: "`SEED` of the draws and of the order of the training data"}, &o.BatchNorm.Seed),
		flags.JSON(&o.report, "print JSON instead of a table"),
	}, flags.Report(&o.report), o.storeRows(), flags.Study(&o.StudyOptions))
	return o.Table
}

// complete completes the options, and refuses those that contradict each other.
func (o *sweepOptions) complete() error {
	o.extend = !o.GivenScale && o.ranks == nil
	if err := o.finish(); err != nil {
		return err
	}
	if o.kept.part.Of > 0 && o.members == 0 {
		return console.Usagef("say how many: --members 30", "--members auto is not for a part: it needs the results of all parts")
	}
	return nil
}

func (o *sweepOptions) sweep(ctx context.Context) error {
	pages, err := o.openPages()
	if err != nil {
		return err
	}
	defer pages.Abort()
	s := &sweep.Sweep{
		Seed:       o.BatchNorm.Seed,
		AllTest:    o.allTest,
		Spell:      o.spelling.Line,
		Members:    o.members,
		Antithetic: o.Antithetic,
		Orthogonal: o.Orthogonal,
		Scales:     o.scales,
	}
	if o.extend {
		s.Extend = sweep.UsualExtend
	}
	estimate := cmp.Or(o.members, ensemble.DefaultMembers)
	in, err := o.OpenStudy(ctx, o.StudyOptions, o.args[:1], false)
	if err != nil {
		return err
	}
	defer in.Close()
	s.Network, s.Validation = in.Runs[0].Network, in.Validation
	if err := sweepRanks(o.ranks, s); err != nil {
		return err
	}
	if err := o.sweepEpochs(ctx, s); err != nil {
		return err
	}
	if s.Test, err = o.openScored(in, o.args[1], o.samples); err != nil {
		return err
	}
	if _, text := dataset.CutOf(s.Test); text && s.Validation == nil {
		return console.Usagef("choose on another text: --val FILE",
			"%s: without --val each half of the examples chooses for the other, and the windows of a text share documents", o.args[1])
	}
	run, err := o.startStudy(ctx, in, s.Draws(s.Default()), estimate, open.Probe{Data: s.Test, Path: o.args[1], Labelled: true})
	if err != nil {
		return err
	}
	s.BatchNorm = in.Inputs.BatchNorm
	bar := o.studyBar(ctx, "sweep", run.shard, s.Images(estimate))
	s.Resize, s.Announce = bar.Resize, o.announceExtension()
	found, err := runStudy(ctx, o.app, o.studyOptions, run, bar, s.Fill, s.Run)
	if err != nil || found == nil {
		return err
	}
	found.Statistics = in.BatchNorm.Findings
	return o.Show(pages, &found.Statistics, found.Show())
}

// announceExtension returns a function that prints what an extension of a sweep tries, with its cost.
func (o *studyOptions) announceExtension() func(sweep.Setting, []sweep.Setting, int64) {
	return func(choice sweep.Setting, next []sweep.Setting, examples int64) {
		var names []string
		for _, set := range next {
			names = append(names, set.String())
		}
		o.Logf("%v is the best so far, at the edge of what was tried. Next: %s (%s more examples through networks)", choice,
			strings.Join(names, "; "), report.Thousands(int(examples)))
	}
}

// wholeNumbers returns the numbers of a flag as whole ones. ok accepts a number, and want says which ones are meant.
func wholeNumbers(flag string, given []float64, ok func(v int) bool, want string) (list []int, err error) {
	for _, v := range given {
		if v != math.Trunc(v) || !ok(int(v)) {
			return nil, console.Usagef("", "--%s: %g: want %s", flag, v, want)
		}
		list = append(list, int(v))
	}
	return list, nil
}

// sweepEpochs reads --epochs. It opens the checkpoints.
func (o *sweepOptions) sweepEpochs(ctx context.Context, s *sweep.Sweep) error {
	n := s.Network
	p := n.Posterior
	given, err := wholeNumbers("epochs", o.epochs,
		func(v int) bool {
			return v >= 2 && v <= len(p.Checkpoints)
		}, fmt.Sprintf("2 to %d, the checkpoints of %s", len(p.Checkpoints), p.Path))
	if err != nil || given == nil {
		return err
	}
	if p.GivenMean != nil {
		return console.Usagef("", "--epochs: the mean of %s was given, and is not that of its first checkpoints", p.Path)
	}
	slices.Sort(given)
	s.Epochs = slices.Compact(given)
	if s.Validation == nil && !s.AllTest {
		return console.Usagef("--val FILE, or --all-test", "--epochs without validation data shows test scores of many settings")
	}
	list, first := p.Checkpoints, 0
	if p.Theta0 != nil {
		list, first = append([]swag.Checkpoint{*p.Theta0}, list...), 1
	}
	models, err := n.OpenAll(ctx, list, func(ck swag.Checkpoint) string { return infer.CheckpointPath(p, ck, o.folder) })
	if err != nil {
		return open.WrongCheckpoints(err)
	}
	s.Earlier = func(ctx context.Context, checkpoints int) (*infer.Network, error) {
		f, err := tempfile.Temporary()
		if err != nil {
			return nil, err
		}
		defer tempfile.Remove(f.Name()) // the open posterior does not need the name
		defer f.Close()
		if err := n.Refit(ctx, f, models[:first+checkpoints]); err != nil {
			return nil, err
		}
		early, err := swag.Open(f.Name())
		if err != nil {
			return nil, err
		}
		of, err := o.Opener.Network(ctx, o.Network, early)
		if form := n.Form(); err == nil && of.Proven() == "" && form != "" {
			err = of.Decide(form) // as decided for the posterior
		}
		return of, err
	}
	return nil
}

// sweepRanks reads --rank. The default is the usual ranks that the posterior allows.
func sweepRanks(given []float64, s *sweep.Sweep) (err error) {
	columns := s.Network.Posterior.Options.Columns
	s.Ranks, err = wholeNumbers("rank", given,
		func(k int) bool {
			return k >= 0 && k != 1 && k <= columns
		}, fmt.Sprintf("0 for the diagonal, or 2 to %d, the columns of %s", columns, s.Network.Posterior.Path))
	if s.Ranks == nil {
		s.Ranks = sweep.UsualRanks(columns)
	}
	return err
}
