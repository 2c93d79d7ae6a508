package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/study/settling"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
)

// maxTop bounds the classes of a row. No network has more.
const maxTop = 1e6

func scoreCommand(a *app) *command {
	o := &scoreOptions{scored: scored{app: a}}
	return &command{
		name:  "score",
		usage: "predict with an ensemble",
		args:  "ENSEMBLE DATA...",
		description: `Runs every member over the data, averages their probabilities, and writes a row for each example: the prediction, its
confidence, and how uncertain it is. Entropies are in nats. Mutual information is the uncertainty that comes from disagreement of the
members. DATA is images (folders, files, tars, lists, or patterns for these), one array (.npz .npy IDX), or a table. Images
are preprocessed as the ensemble says. A listing from swagwrap list stands for all of them. With an ensemble of swagwrap settle
an example runs no more members once it is settled.

   swagwrap score -o predictions.csv ensemble.safetensors images/

The extension of the output chooses the format: .csv .jsonl .parquet .npz; - is CSV on standard output. FILE.meta.json, next to
the output, says what the rows were made from. FILE.partial is there until the rows are complete.
After a stop, the same command with --resume goes on, and gives the same bytes.`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.ensemble, o.data = args[0], args[1:]
			err := o.scoreAll(ctx)
			if unreadable := (*dataset.UnreadableError)(nil); errors.As(err, &unreadable) && !o.skip {
				return &console.Skippable{Err: err}
			}
			return err
		},
	}
}

// scored has what score and settle share: an ensemble, its data, and what computes.
type scored struct {
	*app
	ensemble string
	data     []string
	members  open.EnsembleOptions
	reading  open.DataOptions
	runtime  open.RuntimeOptions
}

// scoreOptions are the values of score's command line.
type scoreOptions struct {
	flags.Table
	scored
	output    flags.OutputOptions
	existing  existing
	part      part
	estimate  bool
	json      bool
	threshold float64 // 0 without --threshold
	pipes     bool
	saveBatch string
	adapt     open.AdaptOptions
	expect    open.ExpectOptions
	montage   string
	maps      mapOptions
	tiling    dataset.Tiling // Size is 0 without --tile
	original  bool
	groups    string
	next      int // rows to label next, or 0
	shares    string
	want      task.RowOptions
	skip      bool // examples that cannot be read
}

func (o *scoreOptions) rows() flags.Table {
	members := false
	o.Table = flags.Join(flags.Output(&o.output), flags.Expect(&o.expect, "outputs estimate part tiled original"), flags.Table{
		flags.Bool(flags.Row{
			Name:  "resume",
			Usage: "go on where an earlier run was stopped, or begin if there was none",
			Not:   "outputs estimate",
		}, &o.existing.resume),
		flags.Integer(flags.Row{
			Name:    "topk",
			Usage:   "write the `K` most probable classes",
			Default: "1",
			Not:     "outputs",
		}, &o.want.Top, 1, maxTop),
		flags.Bool(flags.Row{
			Name:  "probs",
			Usage: "write all probabilities too (.npz always has them, except those of pixels and tokens)",
			Not:   "outputs original",
		}, &o.want.Outcomes),
		flags.Bool(flags.Row{
			Name:  "keep-members",
			Usage: "write the probabilities of each member too",
			Not:   "outputs",
			Then: func() error {
				if members {
					o.want.Members = 1
				}
				return o.complete()
			},
		}, &members),
		threshold(&o.threshold, "the ensemble's, else 0.5"),
		sharesRow(flags.Row{
			Usage: "correct probabilities for the class shares of DATA: `SHARES` are those in a file, or estimate, which finds them " +
				"from the predictions, if they have moved",
			Not: "outputs estimate tiled",
		}, &o.shares),
		onError(&o.skip, "an example that"),
		flags.Labels(&o.reading.Labels),
		flags.Allow(&o.pipes, "pipe", "run the shell commands that a listing of your own names in place of tars"),
	}, flags.OutputNameAndTask(&o.members.Network), flags.Table{
		flags.Text(flags.Row{
			Name: "save-batch",
			Usage: "also write the first batch, as the network sees it, to `FILE.npy`, or .npz for several inputs, to compare it " +
				"with your own pipeline",
			Not: "outputs estimate part tiled",
		}, &o.saveBatch),
		flags.Posterior(&o.members),
		partRow(flags.Row{
			Usage: "score part `I/N` only, I from 0, into OUT.part-I-of-N for merge; auto/N takes I from Slurm, Kubernetes or AWS Batch",
			Not:   "outputs estimate",
		}, &o.part),
		groupsRow(&o.groups),
		nextLabels(&o.next),
	}, o.pixelRows(), flags.Adapt(&o.adapt, ". blocks=512 adapts to each 512 examples of DATA by themselves. none goes back to the "+
		"statistics from before sample --adapt", nil), flags.Data(&o.reading, &o.members.Network), flags.Table{
		flags.Bool(flags.Row{
			Name: "estimate",
			Usage: "score some of the data for a few seconds, write nothing, and say how much time and memory all data take, and how " +
				"many parts take an hour each",
			Not: "outputs tiled",
		}, &o.estimate),
		flags.Bool(flags.Row{Name: "json", Usage: "with --estimate: print JSON instead of text", Not: "outputs"}, &o.json),
		flags.Text(flags.Row{
			Name:  "montage",
			Usage: "show the most and the least certain images with their predictions in `FILE`: .html",
			Not:   "outputs estimate part tiled original",
		}, &o.montage),
	}, flags.Runtime(&o.runtime), flags.Table{ // batches and threads have other defaults here
		flags.BatchSize(&o.runtime.BatchSize, fmt.Sprintf("%d, after swagwrap settle %d, fewer of large ones", infer.DefaultBatchSize,
			infer.SettledBatchSize)),
		flags.Parsed(flags.Row{
			Name:    "threads",
			Short:   "j",
			Usage:   "use `N` threads, or auto: one per core, or half of that if it is measured to be faster",
			Default: "auto",
		}, &o.runtime.Threads, flags.ParseThreads),
		flags.Memory(&o.runtime.Memory, &o.reading.Memory),
	})
	return o.Table
}

// complete completes the options, and refuses those that contradict each other.
func (o *scoreOptions) complete() error {
	o.existing.force = o.output.Force
	o.maps.again = o.existing.force || o.existing.resume || o.part.Of > 0
	if file.IsStdout(o.output.Path) || o.estimate && o.output.Path == "" {
		o.output.Path = "-"
	}
	switch n := o.part.Of; {
	case o.json && !o.estimate:
		return console.Usagef("the extension says the format: -o predictions.jsonl", "--json is for --estimate")
	case o.estimate && o.First("estimate") != "":
		return o.Refuse("estimate", "", "--estimate and --*: want one of them")
	case o.output.Path == "":
		return console.Usagef("say where the predictions go: -o predictions.csv, or -o - for standard output", "no output file")
	case o.output.Path == "-" && o.existing.resume:
		return console.Usagef("write to a file: -o predictions.csv", "--resume: standard output cannot be resumed")
	case n > 0 && o.First("part") != "":
		return o.Refuse("part", "", "--* is not for a part")
	case n > 0 && o.output.Path == "-":
		return console.Usagef("write to a file: -o FILE", "--part: standard output cannot be merged")
	case n > 0 && o.runtime.Provider.Name == ort.Auto:
		return console.Usagef("say for all parts: --provider webgpu, or cpu",
			"--provider auto is not for a part: each would choose by its own machine")
	case n > 0 && o.Row("precision").String() == "auto" && o.runtime.Provider.Name != ort.CPU:
		return console.Usagef("score --estimate measures it once; then say for all of them: --precision bf16, f16 or f32",
			"--precision auto is not for a part: each would choose by its own data")
	case o.shares == open.EstimatedShares && o.output.Path == "-":
		return console.Usagef("write to a file: -o predictions.csv", "--shares estimate needs all examples before the first row")
	case o.shares != "" && o.adapt.Data != "":
		return console.Usagef("adapt with swagwrap sample, and calibrate that ensemble", "--shares and --adapt: want one of them. "+
			"The shares of training are those of predictions without --adapt")
	case o.shares != "" && o.next > 0:
		return console.Usagef("leave out one of them", "--next-labels compares predictions with those of the validation data, and "+
			"--shares corrects them")
	case o.existing.force && o.existing.resume:
		return console.Usagef("--resume goes on with an unfinished output, --force begins anew",
			"--force and --resume: want one of them")
	}
	return nil
}

// scoreJob is a run of score: its inputs and its outputs.
type scoreJob struct {
	ensemble.Scoring
	*scoreOptions
	engine     *infer.Engine
	rounding   *rounding.Change // of the engine's precision, if it was measured
	format     string
	scorer     *ensemble.Scorer
	examples   int // rows; with --tile that of pictures, whose tiles are the data
	schema     *predictions.Schema
	parameters records.Parameters
	probe      []*probe.Report       // the report of each network
	whole      int                   // a run is resumed only after a multiple of this number of rows
	shown      *scoreMontage         // nil without --montage
	drawn      *mapWriter            // nil without --maps
	batch      *console.Output       // the file of --save-batch, or nil
	blocks     *open.BlockAdaptation // nil without --adapt blocks=N
	summary    *summary.Summary
}

// close closes the networks, and removes an unfinished file of --save-batch.
func (job *scoreJob) close() {
	if job.scorer != nil {
		job.scorer.Close()
	}
	job.Ran.Close()
	open.CloseNetworks(job.Networks)
	job.batch.Abort()
	if job.drawn != nil {
		job.drawn.files.Abort(job.drawn.keep)
	}
}

// runs returns the number of runs of one network on one example.
func (job *scoreJob) runs() int { return job.Ensemble.Members() * job.Data.Len() }

func (o *scoreOptions) scoreAll(ctx context.Context) error {
	began := time.Now()
	job, err := o.newScoreJob()
	if err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(frugal))

	if !job.estimate {
		if err := job.check(); err != nil {
			return err
		}
	}
	defer job.close()
	if job.Ensemble, err = o.ReadEnsemble(job.ensemble); err != nil {
		return err
	}
	if err := job.members.Network.GiveTask(job.Ensemble); err != nil {
		return err
	}
	if task.Scoreless(job.Ensemble.Card.Task) {
		return job.scoreOutputs(ctx)
	}
	if err := job.openShares(); err != nil {
		return err
	}
	if err := job.openScoring(ctx); err != nil {
		return err
	}
	if _, _, err := job.expect.Expect(ctx, job.Opener, infer.Run{Engine: job.engine}, open.Measured{
		Network: job.Networks[0],
		Data:    job.Data,
		Path:    open.Shortened(job.data),
	}); err != nil {
		return err
	}
	job.runtime.Measure = job.runtime.Measure || job.estimate
	job.Settled = job.Ensemble.Stopping != nil && job.want.Members == 0 && job.shares == ""
	if !job.estimate && job.Part == nil && job.Blocks == nil {
		job.Ran = &infer.Ran{}
	}
	if job.engine, job.rounding, err = o.Precision(ctx, job.runtime, job.engine, job.runs(), job.Rounding); err != nil {
		return err
	}
	if err := job.prepare(ctx); err != nil {
		return err
	}
	if job.estimate {
		return job.runEstimate(ctx, began)
	}
	if err := job.writeBatch(); err != nil {
		return err
	}
	switch {
	case job.output.Path == "-":
		return job.scoreStream(ctx)
	case job.Part != nil:
		return job.scorePart(ctx)
	}
	return job.scoreFile(ctx)
}

// openScoring opens the ensemble and the data that the arguments name, and checks that they fit together.
func (job *scoreJob) openScoring(ctx context.Context) (err error) {
	path, images := job.ensemble, job.data
	card := job.Ensemble.Card
	if err := open.ThresholdFits(job.threshold > 0, card.Task); err != nil {
		return err
	}
	if job.Networks, err = job.OpenComponents(ctx, job.members, job.Ensemble); err != nil {
		return err
	}
	n := job.Networks[0]
	if job.Preprocess, err = open.Preprocessing(job.reading.Preprocess, card); err != nil {
		return err
	}
	if job.Original, err = job.atOriginal(n); err != nil {
		return err
	}
	if job.drawn, err = newMaps(job.maps, images, job.reading.Labels.Main, path); err != nil {
		return err
	}
	tiling, err := job.tiles(n)
	if err != nil {
		return err
	}
	how := open.ScoredOptions{
		Reading:  job.reading,
		Tiling:   tiling,
		Original: job.Original,
		Parted:   job.Part != nil || job.estimate,
		Pipes:    job.pipes,
		Blocks:   job.adapt.Blocks > 0,
		Measured: job.runtime.Free || job.runtime.Measure,
		Expected: job.expect.Numbers != nil,
	}
	if job.Data, err = job.OpenScored(ctx, how, images, n); err != nil {
		return err
	}
	if len(n.Inputs) > 1 && job.montage != "" {
		return console.Usagef("leave out --montage",
			"--montage: shows pictures of networks that take nothing else, and these take %d inputs", len(n.Inputs))
	}
	if job.shown, err = newMontage(job.montage, job.Data, job.Preprocess); err != nil {
		return err
	}
	if err := job.openMaps(n.Large()); err != nil {
		return err
	}
	if job.runtime.BatchSize, err = open.BatchOf(job.runtime.BatchSize, job.Ensemble); err != nil {
		return err
	}
	if job.engine, err = job.Engine(job.runtime); err != nil {
		return err
	}
	if err := job.adaptScored(ctx); err != nil {
		return err
	}
	if n.Large() && job.want.Outcomes {
		switch {
		case job.format != ".npz":
			return console.Usagef("-o predictions.npz", "--probs: probabilities of pixels or tokens are arrays, which only .npz holds")
		case job.tiling.Size > 0:
			return console.Usagef("leave out --probs; --maps npy=FOLDER writes arrays for each picture",
				"--probs and --tile: pictures have different sizes, and an array has one")
		}
		job.Want.EachOutcome = true
	}
	if job.format == ".parquet" && n.Traits().Text {
		job.Want.Each = true
	}
	job.examples = job.Examples()
	if job.estimate { // nothing is written, so nothing is checked
		return nil
	}
	job.probe, err = job.CheckScored(ctx, job.engine, &job.Scoring, open.Shortened(images), how)
	return err
}

// adaptScored adapts the ensemble as --adapt says. Rows depend on the target then.
func (job *scoreJob) adaptScored(ctx context.Context) error {
	o := job.adapt
	switch {
	case o.Data == "":
		return nil
	case o.Data == open.NoTarget && !job.Ensemble.Adapted():
		return console.BadInput(fmt.Errorf("%s: --adapt none: its batch-norm statistics are not adapted", job.Ensemble.Path),
			"leave it out")
	case o.Data == open.NoTarget:
		job.Ensemble.GoBack()
	case o.Blocks > 0:
		var err error
		if job.blocks, err = open.AdaptBlocks(job.Opener, &job.Scoring, o, open.Shortened(job.data)); err != nil {
			return err
		}
	default:
		reading := job.reading
		reading.Labels = open.Labels{}
		target, err := open.OpenAdaptation(job.Opener, o, reading, job.Networks, job.Ensemble.Sampling.Seed)
		if err != nil {
			return err
		}
		if err := target.Adapt(ctx, infer.Run{Engine: job.engine}, job.Ensemble, job.Networks, nil, reading.Preprocess); err != nil {
			return err
		}
	}
	job.Adapted = true
	return nil
}

// openMaps prepares --maps. pixels says whether the network predicts for each pixel.
func (job *scoreJob) openMaps(pixels bool) (err error) {
	if pixels && job.shown != nil {
		err = job.shown.withMaps(job.drawn)
	}
	if err != nil || job.drawn == nil {
		return err
	}
	if !pixels {
		return console.Usagef("leave out --maps", "--maps: the network gives one prediction for a picture, and none for its pixels")
	}
	job.Positions = job.drawn.write
	return job.drawn.name(job.Examples(), job.Name)
}

// newScoreJob makes the job of a command line.
func (o *scoreOptions) newScoreJob() (job *scoreJob, err error) {
	job = &scoreJob{scoreOptions: o}
	if job.format, err = predictions.Format(o.output.Path); err != nil {
		return nil, console.Usagef("the name's extension chooses the format: -o predictions.csv, or -o - for CSV on standard output",
			"%w", err)
	}
	if o.output.Path == "-" {
		if err := o.Stdout.Ready(); err != nil {
			return nil, err
		}
		o.Streamed = true
	}
	if o.part.Of > 0 {
		job.Part = &records.Part{Index: o.part.Index, Of: o.part.Of}
	}
	job.SkipErrors, job.Threshold, job.Want = o.skip, o.threshold, o.want
	job.Want.Outcomes, job.Want.Each = o.want.Outcomes || job.format == ".npz", job.format == ".jsonl"
	if o.montage != "" {
		job.Want.Top = max(job.Want.Top, shownClasses)
	}
	return job, nil
}

// onError makes the row of --on-error. what describes the inputs.
func onError(skip *bool, what string) *flags.Row {
	return flags.Parsed(flags.Row{
		Name:    "on-error",
		Usage:   "on " + what + " cannot be read: fail|skip. With skip its row says why, and the exit code is 3",
		Default: "fail",
	}, skip, func(s string) (bool, error) { return s == "skip", word.Check(s, "fail", "skip") })
}

// prepare makes the scorer, and prints the task of each network.
func (job *scoreJob) prepare(ctx context.Context) (err error) {
	examples := dataset.Keyed(job.Data)
	given, err := grouping(job.groups, examples, nil, job.Ensemble.Card.Task)
	if err != nil {
		return err
	}
	if job.GroupOf, err = guaranteeGroups(job.Ensemble.Guarantee, given.Report, examples); err != nil {
		return err
	}
	if job.scorer, err = ensemble.NewScorer(ctx, job.engine, job.Scoring); err != nil {
		return console.BadInput(settledHint(err))
	}
	switch rule := job.Ensemble.Stopping; {
	case job.Settled:
		job.Logf("stopping rule: chosen on %s: %s", rule.Cost.Data, settling.Describe(rule, job.Ensemble.Members()))
	case rule != nil:
		why := "--keep-members needs all members"
		if job.shares != "" {
			why = "it was chosen on probabilities without --shares"
		}
		job.Logf("stopping rule: not used, because %s", why)
	}
	for _, line := range job.scorer.Tasks() {
		job.Logf("%s", line)
	}
	if t := job.scorer.Threshold(); t > 0 {
		job.Logf("predicts class 1 where its probability is %.4g or more", t)
	}
	for _, w := range job.scorer.Warnings {
		job.Warnf("%v", w)
	}
	job.Debugf("%s", job.scorer.Plan())
	job.schema = job.scorer.Schema(job.scoreOptions.want.Top) // a montage shows more
	if job.EstimateShares {
		if err := task.Shared(job.scorer.Task()); err != nil {
			return console.BadInput(fmt.Errorf("%s: --shares: %w", job.ensemble, err), "leave it out")
		}
		for i := range job.schema.Columns {
			c := &job.schema.Columns[i]
			c.Hidden = c.Hidden || c.Name == "probs" && !job.scoreOptions.want.Outcomes && job.format != ".npz"
		}
	}
	var named dataset.Dataset
	if job.Part == nil && job.tiling.Size == 0 {
		named = job.Data
	}
	g, err := grouping(job.groups, examples, named, job.scorer.Task().About().Name)
	if err != nil {
		return err
	}
	job.summary = summary.New(job.scorer.Task(), job.schema, summary.NewDrift(job.Ensemble.Validation),
		summary.NewExpected(job.Ensemble.Expected), summary.NewBlocks(job.Blocks, job.examples), g)
	if err := chooseNext(job.summary, job.scorer.Task(), job.next); err != nil {
		return err
	}
	job.summary.Settled = job.Settled
	if t := job.scorer.Task(); !job.Ensemble.Guarantee.Empty() {
		job.Logf("guarantee: %s", job.Ensemble.Guarantee.Guarantees(t))
	}
	if job.shown != nil {
		var ok bool
		if job.shown.task, ok = job.scorer.Task().(task.Pictured); !ok {
			return console.Usagef("leave out --montage", "--montage: images cannot show predictions of the task %q",
				job.scorer.Task().About().Name)
		}
	}
	job.whole = 1
	for _, r := range job.probe {
		job.whole = max(job.whole, r.BatchSize)
	}
	if job.parameters, err = job.scorer.Parameters(console.Producer()); err != nil {
		return err
	}
	job.summary.Realised = guarantee.NewRealised(job.Ensemble.Guarantee, ensemble.MadeWith(job.parameters), job.scorer.Task(),
		job.schema.Columns, job.GroupOf)
	return nil
}

// writeBatch writes the file of --save-batch. It appears together with the result.
func (job *scoreJob) writeBatch() (err error) {
	path := job.saveBatch
	if path == "" {
		return nil
	}
	if len(dataset.Fields(job.Data)) > 1 && filepath.Ext(path) != ".npz" {
		return console.Usagef("", "--save-batch %s: the network takes %d inputs, want the name of an .npz file", path,
			len(job.Networks[0].Inputs))
	}
	size := cmp.Or(job.runtime.BatchSize, infer.DefaultBatchSize)
	if job.batch, err = createBatch(path, job.existing.force || job.existing.resume); err != nil {
		return err
	}
	if err := dataset.WriteBatch(job.batch, job.Data, size, job.Networks[0].TakesBytes(), job.SkipErrors); err != nil {
		return console.BadInput(err)
	}
	return job.batch.Unlike()
}

// createBatch opens the file of --save-batch.
func createBatch(path string, force bool) (*console.Output, error) {
	return console.CreateCompanion(path, force, kind.Array)
}
