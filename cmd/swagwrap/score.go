package main

import (
	"cmp"
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

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/intake"
	"github.com/swagwrap/swagwrap/internal/kind"
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
		Action: a.score,
	}
}

// scoreJob is a run of score: its inputs and its outputs.
type scoreJob struct {
	ensemble.Scoring
	engine         *infer.Engine
	output, format string
	scorer         *ensemble.Scorer
	examples       int // rows; with --tile that of pictures, whose tiles are the data
	schema         *predictions.Schema
	parameters     records.Parameters
	intake         []*intake.Report // the report of each network
	whole          int              // a run is resumed only after a multiple of this number of rows
	montage        *scoreMontage
	maps           *mapWriter    // nil without --maps
	batch          *flags.Output // the file of --save-batch, or nil
	summary        *summary.Summary
}

// close closes the networks, and removes an unfinished file of --save-batch.
func (job *scoreJob) close() {
	closeNetworks(job.Networks)
	job.batch.Abort()
	job.maps.abort()
}

// runs returns the number of runs of one network on one example.
func (job *scoreJob) runs() int { return job.Ensemble.Members() * job.Data.Len() }

// frugal is the percentage of garbage for commands whose buffers are large, live long and hold no pointers. Frequent
// collection is cheap there, and garbage from images and scores does not double the memory.
const frugal = 20

func (a *app) score(c *cli.Context) error {
	began := time.Now()
	job, err := a.scoreFlags(c)
	if err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(frugal))

	if !c.Bool("estimate") {
		if err := job.check(c); err != nil {
			return err
		}
	}
	defer job.close()
	if err := a.openScoring(c, job); err != nil {
		return err
	}
	job.Settled = job.Ensemble.Stopping != nil && !c.Bool("keep-members")
	if err := a.Precision(c, job.engine, job.runs(), job.Rounding); err != nil {
		return err
	}
	if err := a.prepare(c, job); err != nil {
		return err
	}
	if c.Bool("estimate") {
		return a.runEstimate(c, job, began)
	}
	if err := saveBatch(c, job); err != nil {
		return err
	}
	switch {
	case job.output == "-":
		return a.scoreStream(c, job)
	case job.Part != nil:
		return a.scorePart(c, job)
	}
	return a.scoreFile(c, job)
}

// openScoring opens the ensemble and the data that the arguments name, and checks that they fit together.
func (a *app) openScoring(c *cli.Context, job *scoreJob) (err error) {
	path, images := c.Args().First(), c.Args().Tail()
	if job.Ensemble, err = a.openEnsemble(c, path); err != nil {
		return err
	}
	card := job.Ensemble.Card
	if err := thresholdFits(c, card.Task); err != nil {
		return err
	}
	if job.Networks, err = a.components(c, job.Ensemble); err != nil {
		return err
	}
	n := job.Networks[0]
	if job.Preprocess, err = flags.Preprocessing(c, card); err != nil {
		return err
	}
	if job.Original, err = atOriginal(c, n); err != nil {
		return err
	}
	if job.maps, err = newMaps(c, images, flags.Labels(c, ""), path); err != nil {
		return err
	}
	if job.Data, err = a.scoreData(c, images, job); err != nil {
		return err
	}
	if len(n.Inputs) > 1 && c.IsSet("montage") {
		return flags.Usagef("leave out --montage", "--montage: shows pictures of networks that take nothing else, and these take %d inputs", len(n.Inputs))
	}
	if job.montage, err = newMontage(c, job.Data, job.Preprocess); err != nil {
		return err
	}
	if err := job.openMaps(n.Axis() != 0); err != nil {
		return err
	}
	if job.engine, err = a.Engine(c); err != nil {
		return err
	}
	if n.Axis() != 0 && c.Bool("probs") {
		switch {
		case job.format != ".npz":
			return flags.Usagef("-o predictions.npz", "--probs: probabilities of pixels or tokens are arrays, which only .npz holds")
		case c.IsSet("tile"):
			return flags.Usagef("leave out --probs; --maps npy=FOLDER writes arrays for each picture", "--probs and --tile: pictures have different sizes, and an array has one")
		}
		job.Want.EachOutcome = true
	}
	if job.format == ".parquet" && card.Task == task.NextToken {
		job.Want.Each = true
	}
	job.examples = job.Examples()
	return a.checkScored(c, job, inputs.Shortened(images))
}

// openMaps prepares --maps. pixels says whether the network predicts for each pixel.
func (job *scoreJob) openMaps(pixels bool) (err error) {
	if pixels && job.montage != nil {
		err = job.montage.withMaps(job.maps)
	}
	if err != nil || job.maps == nil {
		return err
	}
	if !pixels {
		return flags.Usagef("leave out --maps", "--maps: the network gives one prediction for a picture, and none for its pixels")
	}
	job.Positions = job.maps.write
	return job.maps.name(job.Examples(), job.Name)
}

// scoreFlags reads the flags about the rows.
func (a *app) scoreFlags(c *cli.Context) (*scoreJob, error) {
	job := &scoreJob{output: c.String("output")}
	err := checkEstimate(c)
	if err != nil {
		return nil, err
	}
	if flags.IsStdout(job.output) || c.Bool("estimate") && job.output == "" {
		job.output = "-"
	}
	if job.output == "" {
		return nil, flags.Usagef("say where the predictions go: -o predictions.csv, or -o - for standard output", "no output file")
	}
	if job.format, err = predictions.Format(job.output); err != nil {
		return nil, flags.Usagef("the name's extension chooses the format: -o predictions.csv, or -o - for CSV on standard output", "%w", err)
	}
	if err := a.Stdout.Ready(); job.output == "-" && err != nil {
		return nil, err
	}
	if job.output == "-" && c.Bool("resume") {
		return nil, flags.Usagef("write to a file: -o predictions.csv", "--resume: standard output cannot be resumed")
	}
	switch i, n, err := partOf(c, "montage", "save-batch"); {
	case err != nil:
		return nil, err
	case n > 0 && c.String("provider") == ort.Auto:
		return nil, flags.Usagef("say for all parts: --provider webgpu, or cpu", "--provider auto is not for a part: each would choose by its own machine")
	case n > 0 && c.String("precision") == "auto" && c.String("provider") != ort.CPU:
		return nil, flags.Usagef("score --estimate measures it once; then say for all of them: --precision bf16, f16 or f32", "--precision auto is not for a part: each would choose by its own data")
	case n > 0:
		job.Part = &records.Part{Index: i, Of: n}
	}
	if c.Bool("force") && c.Bool("resume") {
		return nil, flags.Usagef("--resume goes on with an unfinished output, --force begins anew", "--force and --resume: want one of them")
	}
	if _, _, err := flags.Provider(c); err != nil {
		return nil, err
	}
	job.SkipErrors = skipErrors(c)
	job.Want = task.RowOptions{Top: c.Int("topk"), Outcomes: c.Bool("probs") || job.format == ".npz", Each: job.format == ".jsonl"}
	if c.Bool("keep-members") {
		job.Want.Members = 1
	}
	job.Threshold, _ = threshold(c)
	if c.IsSet("montage") {
		const shown = 3 // with their probabilities; a tile needs them
		job.Want.Top = max(job.Want.Top, shown)
	}
	return job, nil
}

// onErrorFlag returns --on-error. what describes the inputs.
func onErrorFlag(what string) cli.Flag {
	return flags.OneOf(&cli.StringFlag{Name: "on-error", Usage: "on " + what + " cannot be read: fail|skip. With skip its row says why, and the exit code is 3", Value: "fail"}, "fail", "skip")
}

func skipErrors(c *cli.Context) bool { return c.String("on-error") == "skip" }

// scoreData opens the images. Names of folders that are not classes of the network give no labels.
func (a *app) scoreData(c *cli.Context, images []string, job *scoreJob) (dataset.Dataset, error) {
	opts, err := inputs.DataOptions(c, flags.Labels(c, ""), job.Networks[0])
	if err != nil {
		return nil, err
	}
	if opts.Tiling, err = tiling(c, job.Networks[0]); err != nil {
		return nil, err
	}
	opts.Original, opts.Parted = job.Original, job.Part != nil || c.Bool("estimate")
	if flags.Allows(c, "pipe") {
		opts.Pipes = c.Context
	}
	d, err := dataset.Open(images, opts)
	if unknown := (*listing.ClassError)(nil); errors.As(err, &unknown) && unknown.Folders {
		a.Warnf(c, "%v: labels are left out", err)
		opts.ClassNames, opts.Unlabelled = nil, true
		d, err = dataset.Open(images, opts)
	}
	return d, inputs.WrongData(c, err, images...)
}

// checkScored checks the data and the networks' scores on it. All parts check the same examples, which are spread over
// all data. If commands make the images, a part checks only its own, because it must not run the other commands.
// --estimate writes nothing, so it checks nothing.
func (a *app) checkScored(c *cli.Context, job *scoreJob, path string) (err error) {
	if c.Bool("estimate") {
		return nil
	}
	data := job.Data
	if job.Part != nil && flags.Allows(c, "pipe") {
		if data, err = job.Own(job.engine); err != nil {
			return flags.BadInput(err)
		}
	}
	if err := batchOf(job.engine, job.Ensemble); err != nil {
		return err
	}
	in := inputs.Intake{Networks: job.Networks, Data: data, Path: path, SkipErrors: job.SkipErrors, Trained: job.Ensemble.Components[0].Intake}
	job.intake, err = a.CheckIntake(c, job.engine, in)
	return err
}

// prepare makes the scorer, and prints the task of each network.
func (a *app) prepare(c *cli.Context, job *scoreJob) (err error) {
	if job.scorer, err = ensemble.NewScorer(c.Context, job.engine, job.Scoring); err != nil {
		return flags.BadInput(settledHint(err))
	}
	switch rule := job.Ensemble.Stopping; {
	case job.Settled:
		a.Logf(c, "stopping rule: chosen on %s: %s", rule.Cost.Data, settling.Describe(rule, job.Ensemble.Members()))
	case rule != nil:
		a.Logf(c, "stopping rule: not used, because --keep-members needs all members")
	}
	for _, line := range job.scorer.Tasks() {
		a.Logf(c, "%s", line)
	}
	if t := job.scorer.Threshold(); t > 0 {
		a.Logf(c, "predicts class 1 where its probability is %.4g or more", t)
	}
	for _, w := range job.scorer.Warnings {
		a.Warnf(c, "%v", w)
	}
	a.Debugf(c, "%s", job.scorer.Plan())
	job.schema = job.scorer.Schema(c.Int("topk")) // a montage shows more
	var named dataset.Dataset
	if job.Part == nil && !c.IsSet("tile") {
		named = job.Data
	}
	g, err := grouping(c, named, job.examples, job.scorer.Task().About().Name)
	if err != nil {
		return err
	}
	job.summary = summary.New(job.scorer.Task(), job.schema, summary.NewDrift(job.Ensemble.Validation), g)
	job.summary.Settled = job.Settled
	if job.montage != nil {
		var ok bool
		if job.montage.task, ok = job.scorer.Task().(task.Pictured); !ok {
			return flags.Usagef("leave out --montage", "--montage: images cannot show predictions of the task %q", job.scorer.Task().About().Name)
		}
	}
	job.whole = 1
	for _, r := range job.intake {
		job.whole = max(job.whole, r.BatchSize)
	}
	job.parameters, err = job.scorer.Parameters(flags.Producer())
	return err
}

// check fails before the work if an output cannot be written.
func (job *scoreJob) check(c *cli.Context) error {
	overwrite := c.Bool("force") || c.Bool("resume") || job.Part != nil // a complete result is checked later
	paths := []string{c.String("montage"), c.String("save-batch")}
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
		create := flags.CreateOutput
		if path == c.String("save-batch") {
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
			row.Fatal = flags.BadInput(row.Fatal)
			if !yield(row) {
				return
			}
		}
	}
}

// scoreStream writes rows to standard output as soon as they are ready.
func (a *app) scoreStream(c *cli.Context, job *scoreJob) error {
	if err := job.maps.begin(nil, 0, job.Name); err != nil {
		return err
	}
	bar := a.Progress(c, "score", int64(job.runs()))
	job.engine.Progress = bar.Add
	if rows, _ := dataset.RowsOf(job.Data); rows > 1 {
		a.Logf(c, "the order is that of windows: the first of each of %d rows, then the second of each. -o FILE has the order of the text", rows)
	}
	out := predictions.NewCSV(a.Stdout, job.schema)
	err := job.scorer.Run(c.Context, job.scorer.Begin(0), func(chunk *infer.Chunk) error {
		if err := weights.Changed(); err != nil {
			return err
		}
		for row := range job.rows(chunk) {
			if row.Fatal != nil {
				return row.Fatal
			}
			job.note(row)
			if err := out.Write(row); err != nil {
				return flags.BadOutput(err)
			}
		}
		return flags.BadOutput(out.Flush())
	})
	bar.Done()
	if err != nil {
		return flags.BadInput(err)
	}
	if err := commitBeside(c, job); err != nil {
		return err
	}
	return a.conclude(c, job)
}

// commitBeside puts the additional outputs in their places, together with the given files.
func commitBeside(c *cli.Context, job *scoreJob, files ...*flags.Output) error {
	montage, err := drawMontage(c, job)
	if err != nil {
		return err
	}
	return flags.Together{Check: job.maps.finish}.Commit(append([]*flags.Output{job.batch, montage}, files...)...)
}

// scoreFile collects rows in the work file, and writes the output when they are complete.
func (a *app) scoreFile(c *cli.Context, job *scoreJob) error {
	if done, err := a.complete(c, job); done || err != nil {
		if done {
			err = cmp.Or(flags.Commit(job.batch), err)
		}
		return err
	}
	head, err := job.head()
	if err != nil {
		return err
	}
	rows, err := a.openRows(c, job.output, records.Unfinished, head, job.whole)
	if err != nil {
		return err
	}
	// No other run can write the output now, but one may just have done so.
	if _, err = os.Lstat(job.output); !c.Bool("force") && err == nil {
		err = flags.BadOutput(fmt.Errorf("%s: appeared while this command ran", job.output))
	} else {
		err = a.scoreRecords(c, job, rows)
	}
	if err != nil {
		return keep(rows, err)
	}
	if err := rows.Remove(); err != nil {
		return flags.BadOutput(err)
	}
	return a.conclude(c, job)
}

// complete reports whether the output of a run with the same parameters already exists. With --resume a finished job
// may be started again.
func (a *app) complete(c *cli.Context, job *scoreJob) (bool, error) {
	if !c.Bool("resume") {
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
		return false, flags.BadInput(fmt.Errorf("%s: exists, and no FILE.meta.json says what it was made from: %w", job.output, err), "--force overwrites it")
	}
	if d := was.Parameters.Differences(job.parameters); d != nil {
		return false, flags.BadInput(&records.ChangedError{Path: job.output, Differences: d}, "--force overwrites it")
	}
	if err := drawn(c, job.output); err != nil {
		return false, err
	}
	a.Logf(c, "%s: is complete", job.output)
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

// drawn fails if the montage or the maps that are asked for are not there. Only examples that are scored give them.
func drawn(c *cli.Context, done string) error {
	return cmp.Or(wasDrawn(c, "maps", mapsFolder(c), done), wasDrawn(c, "montage", c.String("montage"), done))
}

func wasDrawn(c *cli.Context, flag, path, done string) error {
	if _, err := os.Stat(path); path == "" || err == nil {
		return nil
	}
	return flags.Usagef("--force scores all examples again", "--%s: %s has rows already, and %s is not there", flag, done, path)
}

// addRows computes the missing rows.
func (a *app) addRows(c *cli.Context, job *scoreJob, rows *records.File) error {
	members, from := job.Ensemble.Members(), rows.Rows()
	if err := job.maps.begin(job.Part, from, job.Name); err != nil {
		return err
	}
	bar := a.Progress(c, "score", int64(members)*int64(rows.Head.Part.Rows()))
	bar.Add(members * from)
	job.engine.Progress = bar.Add
	err := job.scorer.Run(c.Context, job.scorer.Begin(from), func(chunk *infer.Chunk) error {
		if err := weights.Changed(); err != nil {
			return err // stored rows must come from the posterior that was opened
		}
		err := rows.Append(job.scorer.Begun(chunk), job.rows(chunk))
		job.maps.keepAfter(rows.Rows())
		return flags.BadOutput(err)
	})
	bar.Done()
	if err != nil {
		return flags.BadInput(err)
	}
	if rows.Errors() > 0 && !job.schema.Errors {
		return flags.BadInput(fmt.Errorf("%s: %d rows have an error", rows.Path, rows.Errors()), "--on-error skip writes them as they are")
	}
	return nil
}

// scoreRecords computes the missing rows, and then writes the output.
func (a *app) scoreRecords(c *cli.Context, job *scoreJob, rows *records.File) error {
	if err := a.addRows(c, job, rows); err != nil {
		return err
	}
	out, err := flags.CreateOutput(job.output, c.Bool("force"))
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := writeRows(c, out, job.format, job.schema, job.note, job.schema.InOrder(rows.Rows(), rows.Each)); err != nil {
		return err
	}
	beside := job.about(c)
	beside.Errors = rows.Errors()
	beside.Fill(job.summary)
	meta, err := writeSidecar(beside, job.output)
	if err != nil {
		return err
	}
	defer meta.Abort()
	return commitBeside(c, job, meta, out)
}

// writeRows writes all rows, which each passes to its argument. It also calls note with each row.
func writeRows(c *cli.Context, out *flags.Output, format string, s *predictions.Schema, note func(*records.Row), each func(func(*records.Row) error) error) error {
	err := predictions.Write(out, format, s, filepath.Dir(out.Path), func(write func(*records.Row) error) error {
		return each(func(r *records.Row) error {
			if err := c.Context.Err(); err != nil {
				return err
			}
			note(r)
			return write(r)
		})
	})
	return flags.BadOutput(err)
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
func (a *app) scorePart(c *cli.Context, job *scoreJob) error {
	head, err := job.head()
	if err != nil {
		return err
	}
	if head.About, err = json.Marshal(job.about(c)); err != nil {
		return err
	}
	p, path := head.Part, job.target()
	rows, err := a.runPart(c, path, head, job.whole, func(rows *records.File) error {
		if p.Rows() == 0 {
			return nil
		}
		if err := a.addRows(c, job, rows); err != nil {
			return err
		}
		return job.maps.finish()
	})
	if rows == nil {
		return cmp.Or(err, drawn(c, path))
	}
	a.Logf(c, "%s: %s from %s of %s, %s", path, report.Plural(p.Rows(), "example"), report.Thousands(p.First), report.Thousands(p.All),
		report.Plural(job.Ensemble.Members(), "member"))
	if n := rows.Errors(); n > 0 {
		a.Warnf(c, "%s of %s rows have an error; merge says so with exit code 3", report.Thousands(n), report.Thousands(p.Rows()))
	}
	return nil
}

// saveBatch writes the file of --save-batch. It appears together with the result.
func saveBatch(c *cli.Context, job *scoreJob) error {
	path := c.String("save-batch")
	if path == "" {
		return nil
	}
	if len(dataset.Fields(job.Data)) > 1 && filepath.Ext(path) != ".npz" {
		return flags.Usagef("", "--save-batch %s: the network takes %d inputs, want the name of an .npz file", path, len(job.Networks[0].Inputs))
	}
	size := cmp.Or(c.Int("batch-size"), infer.DefaultBatchSize)
	var err error
	if job.batch, err = createBatch(path, c.Bool("force") || c.Bool("resume")); err != nil {
		return err
	}
	if err := dataset.WriteBatch(job.batch, job.Data, size, job.Networks[0].TakesBytes(), job.SkipErrors); err != nil {
		return flags.BadInput(err)
	}
	return job.batch.Unlike()
}

// createBatch opens the file of --save-batch.
func createBatch(path string, force bool) (*flags.Output, error) {
	return flags.CreateCompanion(path, force, kind.Array)
}
