package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/calibration"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// usualFolds is the number of folds, and so the least number of rows, that calibrate takes without --folds. maxFolds bounds them:
// each is a fit.
const usualFolds, maxFolds = 5, 1000

func calibrateCommand(a *app) *command {
	o := &calibrateOptions{app: a}
	return &command{
		name:  "calibrate",
		usage: "fit a temperature, or another calibration, to saved predictions",
		args:  "PREDICTIONS",
		description: `Reads labelled predictions that any program saved. Fits a calibration, such as a temperature, and shows what it changes.
Fit it on examples that training did not use, and test it on others (--test).

   swagwrap score --probs -o val.csv ensemble.safetensors val/
   swagwrap calibrate -o calibration.json --test test.csv val.csv
   swagwrap calibrate -o calibrated.safetensors --ensemble ensemble.safetensors val.csv

With --ensemble the result is a copy of that ensemble whose scores are calibrated.

--threshold is for two classes. It chooses the probability of class 1 at which class 1 is predicted: for the highest F1, for
the highest sensitivity + specificity − 1 (youden), or the best one with a given precision, recall or specificity. The
ensemble keeps the threshold, and score uses it. --method none fits nothing else.

   swagwrap calibrate -o calibrated.safetensors --threshold recall=0.95 --ensemble ensemble.safetensors val.csv

--threshold risk=R is for any number of classes. It chooses the confidence at which to answer: at most R of the answers on
new rows are wrong, with 95 % confidence.

   swagwrap calibrate -o answers.json --threshold risk=1% --test test.csv val.csv

--coverage chooses thresholds of sets or intervals that contain the label of 90 % of new examples. Sets of labels, and of the
pixels of a picture, miss 10 % at most. With --ensemble, score writes the sets, and so does the model of export. With
--method, one half of the rows fits the calibration and the other half chooses. docs/guarantees.md says what is guaranteed.

   swagwrap calibrate -o guaranteed.safetensors --coverage 90% --ensemble ensemble.safetensors val.csv

Independent labels have one temperature, one for each label (temperatures), or a·z + b of their log-odds (platt).
A regression has one factor s² for all variances (variance), or one for each target (variances). isotonic maps the
distribution function: it changes intervals only, and an ensemble cannot keep it. noise is for networks without a variance
head. It is the standard deviation of targets about predictions with the largest likelihood. If score kept the members, it is
that of their mixture.

   swagwrap score --keep-members -o predictions.npz ensemble.safetensors val.npz
   swagwrap calibrate -o calibrated.safetensors --ensemble ensemble.safetensors predictions.npz

PREDICTIONS is .npz or .npy (arrays probs or logits, and labels; [N C H W] for pixels, [N T C] for tokens), .csv, .tsv or
.parquet (columns p_0 … or logit_0 …, and label), or .jsonl. The values show whether they are probabilities or logits.
Independent labels have the arrays probabilities or logits, and labels. Regressions have target, mean, std (or aleatoric_std
and epistemic_std), and member_mean and member_std. Columns have these names, with _0, _1 … for several targets.
Scores on PREDICTIONS are cross-fitted: each row is scored with a calibration that was fitted without it.`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.predictions = args[0]
			return o.calibrate(ctx)
		},
	}
}

func (o *calibrateOptions) rows() flags.Table {
	o.Table = flags.Join(flags.Output(&o.output), flags.Table{
		flags.OneOf(flags.Row{
			Name:    "task",
			Usage:   "the task of the predictions: classes|next-token|labels|regression, or auto, as score wrote it",
			Default: "auto",
		}, &o.task, "auto", "classes", task.NextToken, "labels", "regression"),
		flags.Text(flags.Row{Name: "method", Usage: methodUsage(), Preset: "the first; noise where there is none"}, &o.method),
		criterion(&o.threshold, "of two classes: choose a threshold on the probability of class 1 by `CRITERION`, or take a number; "+
			"risk is of any classes: "),
	}, coverage(&o.guarantee), flags.Table{
		flags.Labels(&o.labels),
		flags.Text(flags.Row{Name: "test", Usage: "also score the predictions in `FILE`"}, &o.test),
		flags.Text(flags.Row{
			Name:  "key",
			Usage: "the predictions are the array `NAME` of .npz files, or the columns NAME_0, NAME_1 … of tables",
		}, &o.key),
		flags.ClassAxis(&o.axis, nil),
		flags.Text(flags.Row{Name: "ensemble", Usage: "write a copy of the ensemble in `FILE` with what was fitted"}, &o.ensemble),
		flags.Text(flags.Row{
			Name: "save",
			Usage: "write calibrated probabilities, or means and deviations, to `FILE` (.csv or .npz): those of --test, or else of " +
				"PREDICTIONS",
			Then: func() error {
				switch ext := strings.ToLower(filepath.Ext(o.save)); {
				case o.labels.Test != "" && o.test == "":
					return console.Usagef("", "--labels test=FILE without --test")
				case o.save != "" && ext != ".csv" && ext != ".npz":
					return console.Usagef("", "--save %s: want a name that ends in .csv or .npz", o.save)
				}
				return nil
			},
		}, &o.save),
		flags.Integer(flags.Row{Name: "folds", Usage: "cross-fit in `K` folds", Default: strconv.Itoa(usualFolds)}, &o.folds, 2, maxFolds),
		flags.Seed(flags.Row{Usage: "`SEED` of the folds, of the intervals, and of the sets of classes"}, &o.seed),
	})
	return o.Table
}

func methodUsage() string {
	list := func(of target.Kind) string {
		var names []string
		for _, c := range task.Methods(of) {
			names = append(names, string(c.Method))
		}
		return strings.Join(names, "|")
	}
	return fmt.Sprintf("fit `M`: %s|%s to classes, %s to labels, %s to a regression", list(target.Classes), calibration.None,
		list(target.Labels), list(target.Numbers))
}

// calibrateOptions are the values of calibrate's command line.
type calibrateOptions struct {
	*app
	flags.Table
	predictions    string
	output         flags.OutputOptions
	task, method   string
	threshold      chosenThreshold
	guarantee      calibration.Guarantee
	labels         open.Labels
	test           string // the file of other predictions to score, or ""
	key            string
	axis           int    // that of the classes; 0 if it is not given
	ensemble, save string // the files, or ""
	folds          int
	seed           uint64
}

// calibrationJob is a run of calibrate.
type calibrationJob struct {
	calibration.Study
	*calibrateOptions
	of      string // path of the predictions
	carrier *ensemble.Ensemble
	outputs []*console.Output
	found   *calibration.Result
	few     string // why no accuracy to expect is stored, or ""
}

func (o *calibrateOptions) calibrate(_ context.Context) error {
	job, err := o.newCalibrationJob()
	if err != nil {
		return err
	}
	defer job.abort()
	if e, err := ensemble.Open(o.ensemble); err == nil && task.Scoreless(e.Card.Task) { // its outputs are no predictions
		return console.Usagef(task.NoScoresHint(), "%w", task.NoScores(o.ensemble))
	}
	if err := job.readPredictions(); err != nil {
		return err
	}
	if err := job.openEnsemble(o.app); err != nil {
		return err
	}
	if err := job.Check(); err != nil {
		return console.BadInput(err)
	}
	if job.found, err = job.Run(console.Producer()); err != nil {
		if _, ok := errors.AsType[*calibration.NoThreshold](err); ok {
			return console.BadInput(fmt.Errorf("%s: %w", job.of, err))
		}
		return console.BadInput(fmt.Errorf("%s: %w", job.of, err), job.hints(err)...)
	}
	if err := job.unusable(); err != nil {
		return err
	}
	if job.carrier != nil {
		if err := job.carry(); err != nil {
			return err
		}
		if job.few != "" {
			o.Logf("%s", job.few)
		}
	}
	job.found.Chosen = o.Shown != nil // by try
	o.Logf("%s", job.found.Describe())
	if err := job.write(func() error { return o.showTables(job.found.Show().Tables()...) }); err != nil {
		return err
	}
	if job.Criterion.Name == detect.ByRisk && job.carrier == nil || job.found.Undetermined() != "" {
		return nil
	}
	if job.carrier != nil && job.carrier.Expected != nil && !job.found.Pays() {
		o.Logf("only %s knows what to expect on data without labels", job.output.Path)
	}
	o.Next(job.next()...)
	return nil
}

// unusable shows a fit that the rows do not determine, and fails if it is to be stored in an ensemble or applied to predictions.
func (job *calibrationJob) unusable() error {
	why := job.found.Undetermined()
	if why == "" || job.ensemble == "" && job.save == "" {
		return nil
	}
	if !job.Quiet { // on standard error, since there is no result
		if err := job.writeTables(job.Stderr, job.found.Show().Tables()); err != nil {
			return err
		}
	}
	return console.BadInput(fmt.Errorf("%s: %s is not determined, and may make other predictions worse: %s", job.of, job.found.Fitted, why),
		"give more labelled predictions, or use the ensemble without a calibration")
}

// hints says what to do about a fit that failed.
func (job *calibrationJob) hints(err error) (hints []string) {
	if errors.Is(err, calibrate.ErrExcluded) && !job.Fit.Stored() {
		hint := "a probability of 0 says that the true class is impossible. Save logits, if the model has some.\n" +
			"for n votes or trees and C classes, smooth the probabilities and save them again: p = (n * p + 1 / C) / (n + 1)"
		if job.Fit.Logs != nil {
			hint = "a logit of -Inf rules its class out, whatever the input: check the labels, or leave such rows out"
		}
		hints = append(hints, console.Hints(hint)...)
	}
	if few := (*calibrate.FoldsError)(nil); errors.As(err, &few) {
		hints = append(hints, "give more labelled predictions")
		if few.Have > 1 {
			hints[0] += fmt.Sprintf(", or fewer folds: --folds %d", few.Have)
		}
	}
	if job.Fit.LeftOut > 0 {
		hints = append(hints, "rows are counted without those left out")
	}
	return hints
}

// next returns the commands to run next. An ensemble whose calibration does not pay is better without it, unless it guarantees something.
func (job *calibrationJob) next() []string {
	best := job.output.Path
	switch {
	case job.carrier == nil:
		return []string{console.Shell(slices.Concat([]string{"swagwrap", "calibrate", "-o"}, job.again(),
			[]string{"--ensemble", "ENSEMBLE", job.of})...)}
	case !job.found.Pays() && !job.Guarantees():
		best = job.ensemble
	}
	return console.Next(best, kind.Ensemble)
}

// again returns the output and the flags that fit and choose the same for an ensemble.
func (job *calibrationJob) again() []string {
	out, labels := "calibrated.safetensors", []string(nil)
	if job.Guarantees() {
		out = "guaranteed.safetensors"
	}
	if main := job.labels.Main; main != "" {
		labels = []string{"--labels", main}
	}
	return slices.Concat([]string{out}, job.Words("task", "key", "class-axis"), labels,
		job.Words("method", "threshold", "coverage", "set", "by"))
}

// showTables prints tables. If the data goes to standard output, the tables go to standard error, and are left out with -q.
func (a *app) showTables(tables ...*report.Table) error {
	var out io.Writer = a.Stdout
	if a.Streamed {
		if out = a.Stderr; a.Quiet {
			return nil
		}
	}
	return a.writeTables(out, tables)
}

func (a *app) writeTables(out io.Writer, tables []*report.Table) error {
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := t.WriteText(out, a.Screen()); err != nil {
			return console.BadOutput(err)
		}
	}
	return nil
}

// newCalibrationJob checks the flags and creates the outputs.
func (o *calibrateOptions) newCalibrationJob() (*calibrationJob, error) {
	job := &calibrationJob{
		Study: calibration.Study{
			Folds:     o.folds,
			Seed:      o.seed,
			Threshold: o.threshold.value,
			Criterion: o.threshold.by,
			Guarantee: o.guarantee,
		},
		calibrateOptions: o,
		of:               o.predictions,
	}
	err := o.Stdout.Ready() // the tables go there
	if err != nil {
		return nil, err
	}
	out, err := o.CreateResult(o.output.Path, o.output.Force, o.ensemble == "")
	if err != nil {
		return nil, err
	}
	job.outputs = append(job.outputs, out)
	if o.save != "" {
		if out, err = console.CreateOutput(o.save, o.output.Force); err != nil {
			job.abort()
			return nil, err
		}
		job.outputs = append(job.outputs, out)
	}
	return job, nil
}

func (job *calibrationJob) abort() {
	for _, o := range job.outputs {
		o.Abort()
	}
	job.Fit.Close()
	job.Test.Close()
}

// readPredictions reads the predictions to fit on and those to test on, and checks the method.
func (job *calibrationJob) readPredictions() (err error) {
	of := job.task
	if of == "auto" {
		of = summary.TaskOf(job.of)
	}
	switch {
	case calibration.Keyed(of):
	case job.threshold.given:
		return console.Usagef("", "--threshold: is on the probability of class 1 of two, and the task is %s", of)
	case job.key != "":
		return console.Usagef("", "--key is for predictions of classes: those of the task %s have arrays of several names", of)
	}
	if job.Fit, err = job.openPredictions(job.of, of, job.labels.Main); err != nil {
		return err
	}
	if job.Guarantee.Data, err = dataOf(job.Fit); err != nil {
		return err
	}
	usual := job.Fit.Methods()[0]
	if job.Guarantees() {
		usual = calibration.None
	}
	job.Method = cmp.Or(task.Method(job.method), usual)
	if err := job.checkCoverage(); err != nil {
		return err
	}
	if job.Criterion.Name == detect.ByRisk {
		if job.save != "" {
			return console.Usagef("leave out --save", "--threshold %v changes no probabilities", job.Criterion)
		}
		if job.method != "" && job.method != string(calibration.None) {
			return console.Usagef("calibrate first, and choose on the predictions of other examples",
				"--threshold %v with --method %s: the guarantee needs predictions that nothing was fitted to", job.Criterion, job.Method)
		}
		job.Method = calibration.None
	} else if err := job.CheckMethod(); err != nil {
		return console.Usagef("", "--%w", err)
	}
	if job.Method == calibration.None && !job.threshold.given && !job.Guarantees() {
		return console.Usagef("--threshold CRITERION chooses a threshold, and --coverage 90% a guarantee", "--method none: fits nothing")
	}
	path := job.test
	if path == "" {
		return nil
	}
	if job.Test, err = job.openPredictions(path, of, job.labels.Test); err != nil {
		return err
	}
	test, err := dataOf(job.Test)
	if err != nil {
		return err
	}
	job.Guarantee.Tested = test.Made
	if n := job.Test.InCommon(job.Fit); n > 0 {
		job.Warnf("%s: %s of its %s are in %s too, which is fitted on: its scores are too optimistic", path, report.Thousands(n),
			report.Plural(job.Test.Len(), "row"), job.Fit.Path)
	}
	return nil
}

// openPredictions reads predictions of the named task. labels is the file of --labels for them, or "".
func (job *calibrationJob) openPredictions(path, of, labels string) (*calibration.Predictions, error) {
	p, err := calibration.Read(path, of, predictions.ReadOptions{Labels: labels, Key: job.key, Axis: job.axis})
	if errors.Is(err, predictions.ErrNoTargets) {
		return nil, console.BadInput(err, "--labels FILE reads them from a file of their own")
	}
	if order := open.FileOrder(err); order != nil {
		return nil, order
	}
	if err != nil {
		return nil, open.WrongKind(err, path, kind.Predictions)
	}
	if p.Stored() && job.save != "" {
		p.Close()
		return nil, console.Usagef("leave out --save: score --probs writes calibrated ones with the calibrated ensemble",
			"--save: is not for predictions of pixels or tokens")
	}
	what := report.Plural(p.Len(), "row") + ", " + p.Task.About().Size
	if p.From != "" {
		what += ", " + p.From
	}
	if p.Members > 0 {
		what += ", " + report.Plural(p.Members, "member")
	}
	job.Logf("%s: %s", path, what)
	if p.LeftOut > 0 {
		job.Warnf("%s: %s without predictions left out", path, report.Plural(p.LeftOut, "row"))
	}
	if p.Unlabelled > 0 {
		job.Warnf("%s: %s without a label left out", path, report.Plural(p.Unlabelled, "row"))
	}
	job.leftOut(path, p.Unused)
	if text := p.Spreadless(); text != "" {
		job.Warnf("%s: %s", path, text)
	}
	return p, nil
}

// openEnsemble opens the ensemble of --ensemble, and checks that the predictions come from it.
func (job *calibrationJob) openEnsemble(a *app) error {
	path := job.ensemble
	if path == "" {
		return nil
	}
	e, err := a.OpenEnsemble(path)
	if err != nil {
		return err
	}
	if e.Calibration != nil && job.Method != calibration.None {
		return console.BadInput(fmt.Errorf("%s: is calibrated already", path),
			"fit on predictions of the ensemble as sample wrote it, and give that one")
	}
	meta, err := summary.ReadSidecar(job.of + summary.Suffix)
	switch {
	case errors.Is(err, os.ErrNotExist):
		a.Warnf("%s has no .meta.json next to it: make sure that the predictions are those of %s", job.of, path)
	case err != nil:
		return console.BadInput(err)
	case meta.Ensemble.ID != e.ID:
		return console.BadInput(fmt.Errorf("%s: predictions of %s (id %s), not of %s (id %s)", job.of, meta.Ensemble.Path,
			meta.Ensemble.ID, path, e.ID))
	}
	switch chosen := job.threshold.given; {
	case task.TraitsOf(e.Card.Task).Labels != task.TraitsOf(job.Fit.Task.About().Name).Labels:
		return console.BadInput(fmt.Errorf("%s: its task is %s, and that of %s %s", path, e.Card.Task, job.of, job.Fit.Task.About().Name))
	case chosen && !task.TraitsOf(e.Card.Task).Threshold && job.Criterion.Name != detect.ByRisk:
		return console.BadInput(fmt.Errorf("%s: a threshold is on the probability of class 1 of the task binary, and the task is %s",
			path, e.Card.Task))
	case !chosen && e.Threshold > 0 && job.Method != calibration.None:
		return console.BadInput(fmt.Errorf("%s: has a threshold, %g, which was chosen for its probabilities as they are", path,
			e.Threshold), "choose one for those that are calibrated: --threshold")
	}
	if err := job.checkCarrier(a, e); err != nil {
		return err
	}
	if job.Fit.Members > 0 {
		job.Weights = e.Weights()
	}
	job.carrier = e
	return nil
}

// carry stores what was fitted in the ensemble.
func (job *calibrationJob) carry() error {
	if why := job.found.Transferred(); why != "" {
		return console.Usagef("", "--ensemble: %s", why)
	}
	if c := job.found.Fitted; c != nil {
		if err := job.carrier.Calibrate(c); err != nil {
			return console.BadInput(fmt.Errorf("%s: %w", job.ensemble, err))
		}
		job.carrier.FittedOn = &job.Guarantee.Data
	}
	if err := job.guaranteed(); err != nil {
		return err
	}
	if t := job.found.Threshold; t != nil {
		job.carrier.Threshold = t.Value
	}
	if v := job.found.Validation(job.carrier.Threshold); v != nil {
		job.carrier.Validation = v
	}
	job.carrier.Labelled = job.found.Labelled()
	r, err := job.found.Expected(job.carrier.Threshold)
	job.carrier.Expected = r
	if why := calibration.WhyNotExpected(err); why != "" {
		if job.carrier.Members() == 1 {
			why = "one network has no members that could disagree"
		}
		job.few = fmt.Sprintf("%s: no accuracy or error to expect on data without labels is stored: %s", job.of, why)
		err = nil
	}
	if err != nil {
		return console.BadInput(fmt.Errorf("%s: %w", job.of, err))
	}
	return nil
}

// write writes the outputs, and puts them in their places. The first output is the result as JSON, or the ensemble with
// the calibration. The second has calibrated predictions. show prints the result.
func (job *calibrationJob) write(show func() error) error {
	var err error
	if out := job.outputs[0]; job.carrier != nil {
		err = writeEnsemble(job.carrier, out, job.ensemble)
	} else {
		err = console.WriteJSON(out, job.found.Show().JSON)
	}
	if err != nil {
		return console.BadOutput(err)
	}
	if len(job.outputs) > 1 {
		out := job.outputs[1]
		if err := job.found.WriteApplied(out, strings.ToLower(filepath.Ext(out.Path)) == ".npz"); err != nil {
			return console.BadOutput(err)
		}
	}
	return console.Together{Print: show}.Commit(job.outputs...)
}

// writeEnsemble writes a changed copy of the ensemble in the file from. It adapts the paths of posteriors and
// checkpoints to the new folder.
func writeEnsemble(e *ensemble.Ensemble, out *console.Output, from string) error {
	move := func(path *string) {
		if !filepath.IsAbs(*path) {
			*path = file.RelativeTo(out.Path, filepath.Join(filepath.Dir(from), filepath.FromSlash(*path)))
		}
	}
	for i := range e.Components {
		c := &e.Components[i]
		move(&c.Posterior.Path)
		for k := range c.Checkpoints {
			move(&c.Checkpoints[k].Path)
		}
	}
	return e.Write(out, console.Producer())
}
