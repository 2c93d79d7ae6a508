package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/intake"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/settling"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/weights"
)

// maxTop bounds the classes of a row. No network has more.
const maxTop = 1e6

func (a *app) scoreCommand() *cli.Command {
	return &cli.Command{
		Name:      "score",
		Usage:     "predict with an ensemble",
		ArgsUsage: "ENSEMBLE DATA...",
		Description: `Runs every member over the data, averages their probabilities, and writes a row for each example: the prediction, its
confidence, and how uncertain it is. Entropies are in nats. Mutual information is the uncertainty that comes from disagreement of the
members. DATA is images (folders, files, tars, lists, or patterns for these), one array (.npz .npy IDX), or a table. Images
are preprocessed as the ensemble says. A listing from swagwrap list stands for all of them. With an ensemble of swagwrap settle
an example runs no more members once it is settled.

   swagwrap score -o predictions.csv ensemble.safetensors images/

The extension of the output chooses the format: .csv .jsonl .parquet .npz; - is CSV on standard output. FILE.meta.json, next to
the output, says what the rows were made from. FILE.partial is there until the rows are complete.
After a stop, the same command with --resume goes on, and gives the same bytes.`,
		Flags: flags.Join(flags.OutputFlags, []cli.Flag{
			&cli.BoolFlag{Name: "resume", Usage: "go on where an earlier run was stopped, or begin if there was none"},
			flags.Whole(1, maxTop, &cli.IntFlag{Name: "topk", Usage: "write the `K` most probable classes", Value: 1}),
			&cli.BoolFlag{Name: "probs", Usage: "write all probabilities too (.npz always has them, except those of pixels and tokens)"},
			&cli.BoolFlag{Name: "keep-members", Usage: "write the probabilities of each member too"},
			thresholdFlag("the ensemble's, else 0.5"),
			onErrorFlag("an example that"),
			flags.LabelsFlag,
			flags.AllowFlag("pipe", "run the shell commands that a listing of your own names in place of tars"),
			&cli.StringFlag{Name: "output-name", Usage: "take the scores from the networks' output `NAME`", DefaultText: "as at fit"},
			&cli.StringFlag{Name: "save-batch", Usage: "also write the first batch, as the network sees it, to `FILE.npy`, or .npz for several inputs, to compare it with your own pipeline"},
			posteriorFlag, partFlag, groupsFlag, tileFlag, atFlag, mapsFlag,
		}, flags.DataFlags, estimateFlags, montageFlags, flags.RuntimeFlags, []cli.Flag{ // batches and threads have other defaults here
			flags.BatchSizeFlag(fmt.Sprintf("%d, after swagwrap settle %d, fewer of large ones", infer.DefaultBatchSize, infer.SettledBatchSize)),
			flags.Checked(&cli.StringFlag{Name: "threads", Aliases: []string{"j"}, Usage: "use `N` threads, or auto: one per core, or half of that if it is measured to be faster", Value: "auto"}, flags.Threads),
			flags.MemoryFlag,
		}),
		Action: with(readScore, a.score),
	}
}

// scored has what score and settle share: an ensemble, its data, and what computes.
type scored struct {
	ensemble string
	data     []string
	members  members
	reading  flags.Data
	runtime  flags.Runtime
}

func readScored(c *cli.Context) (o scored, err error) {
	o.ensemble, o.data = c.Args().First(), c.Args().Tail()
	if o.members, err = readMembers(c); err != nil {
		return o, err
	}
	if o.reading, err = flags.ReadData(c); err != nil {
		return o, err
	}
	o.runtime, err = flags.ReadRuntime(c)
	return o, err
}

// scoreOptions are the values of score's command line.
type scoreOptions struct {
	scored
	output    string // - is standard output
	existing  existing
	part      part
	estimate  bool
	json      bool
	topk      int
	probs     bool
	threshold float64 // 0 without --threshold
	pipes     bool
	saveBatch string
	montage   string
	maps      mapOptions
	tiling    dataset.Tiling // Size is 0 without --tile
	original  bool
	groups    string
	want      task.RowOptions
	skip      bool   // examples that cannot be read
	untiled   string // a flag that is not with --tile, or ""
	resized   string // a flag that is not with --at original, or ""
}

func readScore(c *cli.Context) (o scoreOptions, err error) {
	if err := readEstimate(c); err != nil {
		return o, err
	}
	o = scoreOptions{output: c.String("output"), existing: existing{c.Bool("force"), c.Bool("resume")}, estimate: c.Bool("estimate"), json: c.Bool("json"), topk: c.Int("topk"), probs: c.Bool("probs"),
		threshold: c.Float64("threshold"), pipes: flags.Allows(c, "pipe"), saveBatch: c.String("save-batch"), montage: c.String("montage"), maps: readMaps(c), original: c.String("at") == "original",
		groups: c.String("groups"), skip: readSkip(c), untiled: flags.FirstOf(c, "montage", "save-batch", "estimate"), resized: flags.FirstOf(c, "tile", "montage", "probs")}
	if console.IsStdout(o.output) || o.estimate && o.output == "" {
		o.output = "-"
	}
	if o.output == "" {
		return o, console.Usagef("say where the predictions go: -o predictions.csv, or -o - for standard output", "no output file")
	}
	if o.output == "-" && o.existing.resume {
		return o, console.Usagef("write to a file: -o predictions.csv", "--resume: standard output cannot be resumed")
	}
	if o.part, err = readPart(c, "montage", "save-batch"); err != nil {
		return o, err
	}
	switch n := o.part.Of; {
	case n > 0 && o.output == "-":
		return o, console.Usagef("write to a file: -o FILE", "--part: standard output cannot be merged")
	case n > 0 && c.String("provider") == ort.Auto:
		return o, console.Usagef("say for all parts: --provider webgpu, or cpu", "--provider auto is not for a part: each would choose by its own machine")
	case n > 0 && c.String("precision") == "auto" && c.String("provider") != ort.CPU:
		return o, console.Usagef("score --estimate measures it once; then say for all of them: --precision bf16, f16 or f32", "--precision auto is not for a part: each would choose by its own data")
	case o.existing.force && o.existing.resume:
		return o, console.Usagef("--resume goes on with an unfinished output, --force begins anew", "--force and --resume: want one of them")
	}
	if o.scored, err = readScored(c); err != nil {
		return o, err
	}
	if s := c.String("tile"); s != "" {
		if o.tiling, err = parseTiling(s); err != nil {
			return o, console.Usagef("", "--tile %w", err)
		}
	}
	o.want = task.RowOptions{Top: o.topk, Outcomes: o.probs}
	if c.Bool("keep-members") {
		o.want.Members = 1
	}
	return o, nil
}

// scoreJob is a run of score: its inputs and its outputs.
type scoreJob struct {
	ensemble.Scoring
	scoreOptions
	engine     *infer.Engine
	rounding   *rounding.Change // of the engine's precision, if it was measured
	format     string
	scorer     *ensemble.Scorer
	examples   int // rows; with --tile that of pictures, whose tiles are the data
	schema     *predictions.Schema
	parameters records.Parameters
	intake     []*intake.Report // the report of each network
	whole      int              // a run is resumed only after a multiple of this number of rows
	shown      *scoreMontage    // nil without --montage
	drawn      *mapWriter       // nil without --maps
	batch      *console.Output  // the file of --save-batch, or nil
	summary    *summary.Summary
}

// close closes the networks, and removes an unfinished file of --save-batch.
func (job *scoreJob) close() {
	closeNetworks(job.Networks)
	job.batch.Abort()
	job.drawn.abort()
}

// runs returns the number of runs of one network on one example.
func (job *scoreJob) runs() int { return job.Ensemble.Members() * job.Data.Len() }

// frugal is the percentage of garbage for commands whose buffers are large, live long and hold no pointers. Frequent
// collection is cheap there, and garbage from images and scores does not double the memory.
const frugal = 20

func (a *app) score(ctx context.Context, o scoreOptions) error {
	began := time.Now()
	job, err := a.newScoreJob(o)
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
	if err := a.openScoring(ctx, job); err != nil {
		return err
	}
	job.Settled = job.Ensemble.Stopping != nil && job.want.Members == 0
	if job.engine, job.rounding, err = a.Precision(ctx, job.runtime, job.engine, job.runs(), job.Rounding); err != nil {
		return err
	}
	if err := a.prepare(ctx, job); err != nil {
		return err
	}
	if job.estimate {
		return a.runEstimate(ctx, job, began)
	}
	if err := job.writeBatch(); err != nil {
		return err
	}
	switch {
	case job.output == "-":
		return a.scoreStream(ctx, job)
	case job.Part != nil:
		return a.scorePart(ctx, job)
	}
	return a.scoreFile(ctx, job)
}

// openScoring opens the ensemble and the data that the arguments name, and checks that they fit together.
func (a *app) openScoring(ctx context.Context, job *scoreJob) (err error) {
	path, images := job.ensemble, job.data
	if job.Ensemble, err = a.openEnsemble(path); err != nil {
		return err
	}
	card := job.Ensemble.Card
	if err := thresholdFits(job.threshold > 0, card.Task); err != nil {
		return err
	}
	if job.Networks, err = a.components(ctx, job.members, job.Ensemble); err != nil {
		return err
	}
	n := job.Networks[0]
	if job.Preprocess, err = flags.Preprocessing(job.reading.Preprocess, card); err != nil {
		return err
	}
	if job.Original, err = job.atOriginal(n); err != nil {
		return err
	}
	if job.drawn, err = newMaps(job.maps, images, job.reading.Labels.Main, path); err != nil {
		return err
	}
	if job.Data, err = a.scoreData(ctx, job); err != nil {
		return err
	}
	if len(n.Inputs) > 1 && job.montage != "" {
		return console.Usagef("leave out --montage", "--montage: shows pictures of networks that take nothing else, and these take %d inputs", len(n.Inputs))
	}
	if job.shown, err = newMontage(job.montage, job.Data, job.Preprocess); err != nil {
		return err
	}
	if err := job.openMaps(n.Axis() != 0); err != nil {
		return err
	}
	if job.runtime.BatchSize, err = batchOf(job.runtime.BatchSize, job.Ensemble); err != nil {
		return err
	}
	if job.engine, err = a.Engine(job.runtime); err != nil {
		return err
	}
	if n.Axis() != 0 && job.probs {
		switch {
		case job.format != ".npz":
			return console.Usagef("-o predictions.npz", "--probs: probabilities of pixels or tokens are arrays, which only .npz holds")
		case job.tiling.Size > 0:
			return console.Usagef("leave out --probs; --maps npy=FOLDER writes arrays for each picture", "--probs and --tile: pictures have different sizes, and an array has one")
		}
		job.Want.EachOutcome = true
	}
	if job.format == ".parquet" && card.Task == task.NextToken {
		job.Want.Each = true
	}
	job.examples = job.Examples()
	return a.checkScored(ctx, job, inputs.Shortened(images))
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
func (a *app) newScoreJob(o scoreOptions) (job *scoreJob, err error) {
	job = &scoreJob{scoreOptions: o}
	if job.format, err = predictions.Format(o.output); err != nil {
		return nil, console.Usagef("the name's extension chooses the format: -o predictions.csv, or -o - for CSV on standard output", "%w", err)
	}
	if o.output == "-" {
		if err := a.Stdout.Ready(); err != nil {
			return nil, err
		}
		a.Streams()
	}
	if o.part.Of > 0 {
		job.Part = &records.Part{Index: o.part.Index, Of: o.part.Of}
	}
	job.SkipErrors, job.Threshold, job.Want = o.skip, o.threshold, o.want
	job.Want.Outcomes, job.Want.Each = o.want.Outcomes || job.format == ".npz", job.format == ".jsonl"
	if o.montage != "" {
		const shown = 3 // with their probabilities; a tile needs them
		job.Want.Top = max(job.Want.Top, shown)
	}
	return job, nil
}

// onErrorFlag returns --on-error. what describes the inputs.
func onErrorFlag(what string) cli.Flag {
	return flags.OneOf(&cli.StringFlag{Name: "on-error", Usage: "on " + what + " cannot be read: fail|skip. With skip its row says why, and the exit code is 3", Value: "fail"}, "fail", "skip")
}

func readSkip(c *cli.Context) bool { return c.String("on-error") == "skip" }

// scoreData opens the images. Names of folders that are not classes of the network give no labels.
func (a *app) scoreData(ctx context.Context, job *scoreJob) (dataset.Dataset, error) {
	opts, err := inputs.DataOptions(job.reading, job.reading.Labels.Main, job.Networks[0])
	if err != nil {
		return nil, err
	}
	if opts.Tiling, err = job.tiles(job.Networks[0]); err != nil {
		return nil, err
	}
	opts.Original, opts.Parted = job.Original, job.Part != nil || job.estimate
	if job.pipes {
		opts.Pipes = ctx
	}
	d, err := dataset.Open(job.data, opts)
	unknown := (*names.ClassError)(nil)
	if errors.As(err, &unknown) && unknown.Folders || errors.As(err, new(*names.CountError)) {
		why := err
		opts.Known.Classes, opts.Unlabelled = nil, true
		if d, err = dataset.Open(job.data, opts); err == nil {
			dataset.Doubt(d, fmt.Sprintf("labels are left out: %v", why))
		}
	}
	return d, a.WrongData(err, job.data...)
}

// checkScored checks the data and the networks' scores on it. All parts check the same examples, which are spread over
// all data. If commands make the images, a part checks only its own, because it must not run the other commands.
// --estimate writes nothing, so it checks nothing.
func (a *app) checkScored(ctx context.Context, job *scoreJob, path string) (err error) {
	if job.estimate {
		return nil
	}
	data := job.Data
	if job.Part != nil && job.pipes {
		if data, err = job.Own(job.engine); err != nil {
			return console.BadInput(err)
		}
	}
	in := inputs.Intake{Networks: job.Networks, Data: data, Path: path, SkipErrors: job.SkipErrors, Scored: true, Trained: job.Ensemble.Components[0].Intake, Preprocess: job.reading.Preprocess}
	job.intake, err = a.CheckIntake(ctx, job.engine, in)
	return err
}

// prepare makes the scorer, and prints the task of each network.
func (a *app) prepare(ctx context.Context, job *scoreJob) (err error) {
	if job.scorer, err = ensemble.NewScorer(ctx, job.engine, job.Scoring); err != nil {
		return console.BadInput(settledHint(err))
	}
	switch rule := job.Ensemble.Stopping; {
	case job.Settled:
		a.Logf("stopping rule: chosen on %s: %s", rule.Cost.Data, settling.Describe(rule, job.Ensemble.Members()))
	case rule != nil:
		a.Logf("stopping rule: not used, because --keep-members needs all members")
	}
	for _, line := range job.scorer.Tasks() {
		a.Logf("%s", line)
	}
	if t := job.scorer.Threshold(); t > 0 {
		a.Logf("predicts class 1 where its probability is %.4g or more", t)
	}
	for _, w := range job.scorer.Warnings {
		a.Warnf("%v", w)
	}
	a.Debugf("%s", job.scorer.Plan())
	job.schema = job.scorer.Schema(job.topk) // a montage shows more
	var named dataset.Dataset
	if job.Part == nil && job.tiling.Size == 0 {
		named = job.Data
	}
	g, err := grouping(job.groups, named, job.examples, job.scorer.Task().About().Name)
	if err != nil {
		return err
	}
	job.summary = summary.New(job.scorer.Task(), job.schema, summary.NewDrift(job.Ensemble.Validation), g)
	job.summary.Settled = job.Settled
	if job.shown != nil {
		var ok bool
		if job.shown.task, ok = job.scorer.Task().(task.Pictured); !ok {
			return console.Usagef("leave out --montage", "--montage: images cannot show predictions of the task %q", job.scorer.Task().About().Name)
		}
	}
	job.whole = 1
	for _, r := range job.intake {
		job.whole = max(job.whole, r.BatchSize)
	}
	job.parameters, err = job.scorer.Parameters(console.Producer())
	return err
}

// check fails before the work if an output cannot be written.
func (job *scoreJob) check() error {
	overwrite := job.existing.force || job.existing.resume || job.Part != nil // a complete result is checked later
	paths := []string{job.montage, job.saveBatch}
	switch {
	case job.Part != nil:
		paths = append(paths, job.target(), partial(job.target()))
	case job.output != "-":
		paths = append(paths, job.output, job.output+summary.Suffix, partial(job.target()))
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		create := console.CreateOutput
		if path == job.saveBatch {
			create = createBatch
		}
		out, err := create(path, overwrite || path == partial(job.target())) // openRecords checks it
		if err != nil {
			return err
		}
		defer out.Abort()
	}
	return nil
}

// rows iterates over the rows of a chunk. An error that ends the run is the fault of the input, unless it is marked.
func (job *scoreJob) rows(chunk *infer.Chunk) iter.Seq[*predictions.Row] {
	return func(yield func(*predictions.Row) bool) {
		for row := range job.scorer.Rows(chunk) {
			row.Fatal = console.BadInput(row.Fatal)
			if !yield(row) {
				return
			}
		}
	}
}

// scoreStream writes rows to standard output as soon as they are ready.
func (a *app) scoreStream(ctx context.Context, job *scoreJob) error {
	if err := job.drawn.begin(nil, 0, job.Name); err != nil {
		return err
	}
	bar := a.Progress(ctx, "score", int64(job.runs()))
	if rows, _ := dataset.RowsOf(job.Data); rows > 1 {
		a.Logf("the order is that of windows: the first of each of %d rows, then the second of each. -o FILE has the order of the text", rows)
	}
	out := predictions.NewCSV(a.Stdout, job.schema)
	err := job.scorer.Run(ctx, job.scorer.Begin(0), bar.Add, func(chunk *infer.Chunk) error {
		if err := weights.Changed(); err != nil {
			return err
		}
		for row := range job.rows(chunk) {
			if row.Fatal != nil {
				return row.Fatal
			}
			job.note(row)
			if err := out.Write(row); err != nil {
				return console.BadOutput(err)
			}
		}
		return console.BadOutput(out.Flush())
	})
	bar.Done()
	if err != nil {
		return console.BadInput(err)
	}
	if err := commitBeside(job); err != nil {
		return err
	}
	return a.conclude(job)
}

// commitBeside puts the additional outputs in their places, together with the given files.
func commitBeside(job *scoreJob, files ...*console.Output) error {
	montage, err := drawMontage(job)
	if err != nil {
		return err
	}
	return console.Together{Check: job.drawn.finish}.Commit(append([]*console.Output{job.batch, montage}, files...)...)
}

// scoreFile collects rows in the work file, and writes the output when they are complete.
func (a *app) scoreFile(ctx context.Context, job *scoreJob) error {
	if done, err := a.complete(job); done || err != nil {
		if done {
			err = cmp.Or(console.Commit(job.batch), err)
		}
		return err
	}
	head, err := job.head()
	if err != nil {
		return err
	}
	rows, err := a.openRows(job.existing, job.output, records.Unfinished, head, job.whole)
	if err != nil {
		return err
	}
	// No other run can write the output now, but one may just have done so.
	if _, err = os.Lstat(job.output); !job.existing.force && err == nil {
		err = console.BadOutput(fmt.Errorf("%s: appeared while this command ran", job.output))
	} else {
		err = a.scoreRecords(ctx, job, rows)
	}
	if err != nil {
		return keep(rows, err)
	}
	if err := rows.Remove(); err != nil {
		return console.BadOutput(err)
	}
	return a.conclude(job)
}

// complete reports whether the output of a run with the same parameters already exists. With --resume a finished job
// may be started again.
func (a *app) complete(job *scoreJob) (bool, error) {
	if !job.existing.resume {
		return false, nil
	}
	if _, err := os.Stat(job.output); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var was summary.Sidecar
	js, err := file.Content(job.output+summary.Suffix, summary.MaxSidecar)
	if err == nil {
		err = json.Unmarshal(js, &was)
	}
	if err != nil {
		return false, console.BadInput(fmt.Errorf("%s: exists, and no FILE.meta.json says what it was made from: %w", job.output, err), "--force overwrites it")
	}
	if d := was.Parameters.Differences(job.parameters); d != nil {
		return false, console.BadInput(&records.ChangedError{Path: job.output, Differences: d}, "--force overwrites it")
	}
	if err := job.madeWith(job.output); err != nil {
		return false, err
	}
	a.Logf("%s: is complete", job.output)
	if head, err := job.head(); err == nil {
		if rows, err := records.Open(partial(job.output), records.Unfinished, head, records.Resume); err == nil {
			rows.Remove() // the run was killed before it removed the file
		}
	}
	if was.Errors > 0 {
		return true, incomplete(job.output, was.Errors, was.Rows)
	}
	return true, nil
}

// madeWith fails if the montage or the maps that are asked for are not there. Only examples that are scored give them.
func (o scoreOptions) madeWith(done string) error {
	return cmp.Or(wasDrawn("maps", o.maps.folder, done), wasDrawn("montage", o.montage, done))
}

func wasDrawn(flag, path, done string) error {
	if _, err := os.Stat(path); path == "" || err == nil {
		return nil
	}
	return console.Usagef("--force scores all examples again", "--%s: %s has rows already, and %s is not there", flag, done, path)
}

// addRows computes the missing rows.
func (a *app) addRows(ctx context.Context, job *scoreJob, rows *records.File) error {
	members, from := job.Ensemble.Members(), rows.Rows()
	if err := job.drawn.begin(job.Part, from, job.Name); err != nil {
		return err
	}
	bar := a.Progress(ctx, "score", int64(members)*int64(rows.Head.Part.Rows()))
	bar.Add(members * from)
	err := job.scorer.Run(ctx, job.scorer.Begin(from), bar.Add, func(chunk *infer.Chunk) error {
		if err := weights.Changed(); err != nil {
			return err // stored rows must come from the posterior that was opened
		}
		err := rows.Append(job.scorer.Begun(chunk), job.rows(chunk))
		job.drawn.keepAfter(rows.Rows())
		return console.BadOutput(err)
	})
	bar.Done()
	if err != nil {
		return console.BadInput(err)
	}
	if rows.Errors() > 0 && !job.schema.Errors {
		return console.BadInput(fmt.Errorf("%s: %d rows have an error", rows.Path, rows.Errors()), "--on-error skip writes them as they are")
	}
	return nil
}

// scoreRecords computes the missing rows, and then writes the output.
func (a *app) scoreRecords(ctx context.Context, job *scoreJob, rows *records.File) error {
	if err := a.addRows(ctx, job, rows); err != nil {
		return err
	}
	out, err := console.CreateOutput(job.output, job.existing.force)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := writeRows(ctx, out, job.format, job.schema, job.note, job.schema.InOrder(rows.Rows(), rows.Each)); err != nil {
		return err
	}
	beside := job.about()
	beside.Errors = rows.Errors()
	beside.Fill(job.summary)
	meta, err := writeSidecar(beside, job.output)
	if err != nil {
		return err
	}
	defer meta.Abort()
	return commitBeside(job, meta, out)
}

// writeRows writes all rows, which each passes to its argument. It also calls note with each row.
func writeRows(ctx context.Context, out *console.Output, format string, s *predictions.Schema, note func(*records.Row), each func(func(*records.Row) error) error) error {
	err := predictions.Write(out, format, s, filepath.Dir(out.Path), func(write func(*records.Row) error) error {
		return each(func(r *records.Row) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			note(r)
			return write(r)
		})
	})
	return console.BadOutput(err)
}

// target returns the path of the run's output.
func (job *scoreJob) target() string {
	if p := job.Part; p != nil {
		return records.PartName(job.output, p.Index, p.Of)
	}
	return job.output
}

// head returns the head of the work file.
func (job *scoreJob) head() (*records.Head, error) {
	part := records.Part{Of: 1, End: job.examples, All: job.examples}
	if job.Part != nil {
		part = *job.Part
	}
	return job.schema.Head(job.scorer.Task().About().Name, part, job.parameters)
}

// scorePart writes the rows of a part to its file.
func (a *app) scorePart(ctx context.Context, job *scoreJob) error {
	head, err := job.head()
	if err != nil {
		return err
	}
	if head.About, err = json.Marshal(job.about()); err != nil {
		return err
	}
	p, path := head.Part, job.target()
	rows, err := a.runPart(job.existing, path, head, job.whole, func(rows *records.File) error {
		if p.Rows() == 0 {
			return nil
		}
		if err := a.addRows(ctx, job, rows); err != nil {
			return err
		}
		return job.drawn.finish()
	})
	if rows == nil {
		return cmp.Or(err, job.madeWith(path))
	}
	a.Logf("%s: %s from %s of %s, %s", path, report.Plural(p.Rows(), "example"), report.Thousands(p.First), report.Thousands(p.All),
		report.Plural(job.Ensemble.Members(), "member"))
	if n := rows.Errors(); n > 0 {
		a.Warnf("%s of %s rows have an error; merge says so with exit code 3", report.Thousands(n), report.Thousands(p.Rows()))
	}
	return nil
}

// writeBatch writes the file of --save-batch. It appears together with the result.
func (job *scoreJob) writeBatch() (err error) {
	path := job.saveBatch
	if path == "" {
		return nil
	}
	if len(dataset.Fields(job.Data)) > 1 && filepath.Ext(path) != ".npz" {
		return console.Usagef("", "--save-batch %s: the network takes %d inputs, want the name of an .npz file", path, len(job.Networks[0].Inputs))
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
