// Package describe says what a file is: what it was made from, how good it is, and which command reads it. It knows all
// files but ONNX checkpoints, for which package diagnosis says more.
package describe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/programs"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/calibration"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/internal/study/settling"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// described is the output of inspect for a file that is not a checkpoint. JSON has the same fields; docs/formats.md
// lists them.
type described struct {
	Path     string            `json:"path"`
	Kind     kind.Kind         `json:"kind"`
	Producer string            `json:"producer,omitempty"` // program and version
	ID       string            `json:"id,omitempty"`       // of a posterior or an ensemble
	From     []report.Fact     `json:"made_from"`
	Quality  []report.Fact     `json:"quality"`
	Card     json.RawMessage   `json:"card,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"` // as it stands in the file
	Next     []string          `json:"next"`               // commands that read the file

	env  *console.Env
	ctx  context.Context // of one description
	how  Options
	more func() error // prints further tables
}

// most is the number of posteriors or arrays that are listed.
const most = 20

// warning is the name of a fact that is printed last.
const warning = "warning"

func (d *described) from(name, format string, args ...any) {
	d.From = append(d.From, study.Fact(name, format, args...))
}

func (d *described) quality(name, format string, args ...any) {
	d.Quality = append(d.Quality, study.Fact(name, format, args...))
}

// short returns the first digits of a SHA-256, which identify a file for a reader.
func short(sum string) string { return sum[:min(12, len(sum))] }

// describers have the function that describes a file, for each kind that is not a checkpoint.
var describers = map[kind.Kind]func(*described) error{
	kind.Posterior:   (*described).posterior,
	kind.Ensemble:    (*described).ensemble,
	kind.ScorePart:   func(d *described) error { return d.rows(records.ScorePart) },
	kind.WorkFile:    func(d *described) error { return d.rows(records.Unfinished) },
	kind.StoreEntry:  func(d *described) error { return d.rows(records.Stored) },
	kind.Store:       (*described).store,
	kind.Settings:    (*described).settings,
	kind.Calibration: (*described).calibration,
	kind.Predictions: (*described).predictions,
	kind.Sidecar:     (*described).sidecar,
	kind.Data:        (*described).data,
	kind.Page:        func(*described) error { return nil },
}

// Options says how files are described.
type Options struct {
	JSON     bool
	Template string // the graph that PyTorch's checkpoints are read against, or ""
}

// Files prints what the files at paths are. It reports whether it did: ONNX checkpoints need more than a description.
func Files(ctx context.Context, a *console.Env, how Options, paths []string) (done bool, err error) {
	var all []*described
	for _, path := range paths {
		d := &described{Path: path, Kind: kind.Detect(path), From: []report.Fact{}, Quality: []report.Fact{}, env: a, ctx: ctx, how: how}
		describer := describers[d.Kind]
		switch {
		case d.Kind == kind.Model && kind.Exported(path):
			describer = (*described).exported
		case d.Kind == kind.Checkpoint && how.Template == "" && exportedWeights(path) != nil:
			describer = (*described).weights
		}
		if d.Kind == kind.Folder {
			_, err := (&open.Opener{Reporter: a}).Models([]string{path}, how.Template)
			if several := (*programs.SeveralError)(nil); errors.As(err, &several) {
				return true, err
			} else if err != nil {
				describer = (*described).pictures
			}
		}
		if describer == nil {
			return false, nil
		}
		if err := describer(d); err != nil {
			return true, console.BadInput(err)
		}
		if d.Next == nil {
			d.Next = console.Next(path, d.Kind)
		}
		all = append(all, d)
	}
	if len(all) == 0 {
		return false, nil
	}
	if how.JSON {
		if len(all) == 1 {
			return true, console.WriteJSON(a.Stdout, all[0])
		}
		return true, console.WriteJSON(a.Stdout, all)
	}
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		if err := d.write(); err != nil {
			return true, err
		}
	}
	a.Next(all[len(all)-1].Next...)
	return true, nil
}

// write prints a description as text.
func (d *described) write() error {
	out := d.env.Stdout
	by := ""
	if d.Producer != "" {
		by = ", written by " + d.Producer
	}
	text.Line(out, "%s: %s%s", d.Path, d.Kind, by)
	report.WriteFacts(out, "  ", 11, report.Fact{Name: "id", Value: short(d.ID)})
	report.WriteFacts(out, "  ", 11, slices.DeleteFunc(slices.Concat(d.From, d.Quality), func(f report.Fact) bool {
		return f.Name == warning
	})...)
	if err := writeCard(out, string(d.Card)); err != nil {
		return console.BadInput(fmt.Errorf("%s: %w", d.Path, err))
	}
	if d.more != nil {
		if err := d.more(); err != nil {
			return err
		}
	}
	for _, f := range d.Quality {
		if f.Name == warning {
			text.Line(out, "warning: %s", f.Value)
		}
	}
	return nil
}

// ofSafetensors opens a posterior or an ensemble. It reads their common metadata, and checks the checksums.
func (d *described) ofSafetensors() (*weights.Safetensors, error) {
	st, err := weights.OpenSafetensors(d.Path)
	if err != nil {
		return nil, err
	}
	if st.HasChecksums() {
		if err := st.Verify(); err != nil {
			st.Close()
			return nil, err
		}
	}
	d.ID, d.Metadata, d.Producer = st.ID(), st.Metadata, st.Metadata["producer"]
	if card := st.Metadata["card"]; card != "" {
		d.Card = json.RawMessage(card)
	}
	return st, nil
}

func (d *described) posterior() error {
	st, err := d.ofSafetensors()
	if err != nil {
		return err
	}
	p, err := swag.Read(st)
	if err != nil {
		return err
	}
	defer p.Close()
	if err := p.Verify(); err != nil {
		return err
	}
	if _, err = infer.NewNetwork(p, infer.KeepAll, ""); err != nil {
		return err
	}
	d.Next = console.NextOf(p)
	d.checkpoints("checkpoints", p.Checkpoints)
	if p.Theta0 != nil {
		d.checkpoints("theta0", []swag.Checkpoint{*p.Theta0})
	}
	if p.GivenMean != nil {
		d.checkpoints("mean", []swag.Checkpoint{*p.GivenMean})
	}
	o := p.Options
	d.from("weights", "%s, and %s of batch norm", report.Thousands(int(p.Layout.Len(weights.Parameter))),
		report.Thousands(int(p.Layout.Len(weights.Statistic))))
	d.from("options", "rank %d, %s deviations, divisor %d", o.Rank, o.Deviations, o.Divisor)
	d.parity(p.Card)
	screen := d.env.Screen()
	if d.how.JSON {
		screen = report.Screen{}
	}
	health, err := diagnosis.Trajectory(p, screen)
	if err != nil {
		return err
	}
	for _, w := range p.Warnings {
		d.quality(warning, "%s", w)
	}
	if d.how.JSON {
		for _, line := range health {
			d.quality("trajectory", "%s", line)
		}
	}
	layout, n := p.Layout.Tensors, len(p.Checkpoints)
	d.more = func() (err error) {
		out := d.env.Stdout
		fmt.Fprintln(out)
		if d.env.Verbose {
			err = diagnosis.WriteTensors(out, screen, layout, n, true)
		} else {
			err = diagnosis.WriteRoles(out, layout, n, false)
		}
		fmt.Fprintln(out, strings.Join(health, "\n"))
		return err
	}
	return nil
}

// checkpoints names the files of checkpoints: all of them in JSON's metadata, the first and the last here.
func (d *described) checkpoints(name string, all []swag.Checkpoint) {
	one := func(c swag.Checkpoint) string { return fmt.Sprintf("%s (%s)", c, short(c.SHA256)) }
	switch n := len(all); n {
	case 0:
		d.from(name, "none")
	case 1:
		d.from(name, "%s", one(all[0]))
	default:
		d.from(name, "%s: %s … %s", report.Thousands(n), one(all[0]), one(all[n-1]))
	}
}

func (d *described) ensemble() error {
	st, err := d.ofSafetensors()
	if err != nil {
		return err
	}
	defer st.Close()
	e, err := ensemble.Read(st)
	if err != nil {
		return err
	}
	d.sampling(e.Sampling, e.Components)
	for i := range e.Components {
		p, err := e.OpenPosterior(i, nil)
		if err != nil {
			d.quality(warning, "%v", err)
			continue // score asks for it
		}
		defer p.Close()
		n, err := infer.NewNetwork(p, infer.KeepAll, "")
		if err == nil {
			err = e.SoundStatistics(i, n)
		}
		if err != nil {
			return err
		}
	}
	d.parity(e.Card)
	d.calibrated(e.Calibration, e.Threshold)
	d.guaranteed(e.Guarantee)
	d.Next = console.NextOfEnsemble(e)
	if r := e.Stopping; r != nil {
		d.quality("settled", "%s", settling.Describe(r, e.Members()))
	}
	return nil
}

// parity says how the network was held against the training framework.
func (d *described) parity(card swag.Card) {
	if card.Parity != nil {
		d.quality("parity", "%v", card.Parity)
	}
}

// guaranteed says what a file guarantees of predictions.
func (d *described) guaranteed(g *guarantee.Guarantee) {
	if g != nil && g.Coverage != nil {
		spread := g.Coverage.Spread()
		if spread != "" {
			spread = "; " + spread
		}
		name := "coverage"
		if g.Coverage.Size > 0 {
			name = "size of sets"
		}
		d.quality(name, "%s by %s%s, chosen on %s%s", g.Coverage.Amount(), g.Coverage.Method,
			g.Coverage.Parts(), report.Plural(g.Coverage.Data.Examples, "example"), spread)
	}
	if g != nil && g.Answers != nil {
		d.quality("answers", "%s", g.Answers.Guarantee())
	}
}

// drawn says how members were made.
func drawn(how ensemble.Draw) string {
	switch {
	case how.Covariance == ensemble.Iterates:
		return "the checkpoints themselves"
	case how.Scale == 0:
		return "the mean of the weights (SWA)"
	}
	s := fmt.Sprintf("%s, scale %g, seed %d", how.Covariance, how.Scale, how.Seed)
	if how.Antithetic {
		s += ", antithetic"
	}
	if how.Orthogonal {
		s += ", orthogonal"
	}
	return s
}

// sampling says how members were drawn, and from what.
func (d *described) sampling(how ensemble.Draw, components []ensemble.Component) {
	members := 0
	for _, c := range components {
		members += c.Members
	}
	made := drawn(how)
	if how.Covariance == ensemble.Iterates && members == len(components) {
		made = "the last checkpoint of each posterior"
	}
	d.from("members", "%d: %s", members, made)
	for _, c := range components[:min(len(components), most)] {
		of := fmt.Sprintf("%s (%s)", c.Posterior.Path, short(c.Posterior.ID))
		if len(components) > 1 {
			of += fmt.Sprintf(", %s, weight %.3g", report.Plural(c.Members, "member"), c.Weight)
		}
		d.from("posterior", "%s", of)
		if b := c.BatchNorm; b != nil && b.Sources == nil {
			d.from("batch norm", "the checkpoint's own statistics")
		} else if b != nil {
			var data []string
			for _, s := range b.Sources {
				data = append(data, fmt.Sprintf("%s (%s)", s.Path, short(s.SHA256)))
			}
			d.from("batch norm", "%s of %s", report.Plural(b.Examples, b.Unit), strings.Join(data, ", "))
			for _, w := range b.Warnings {
				d.quality(warning, "%s", w)
			}
		}
	}
	if n := len(components) - most; n > 0 {
		d.from("posterior", "and %d more", n)
	}
}

// calibrated says how the average of an ensemble is calibrated.
func (d *described) calibrated(c *task.Calibration, threshold float64) {
	if c == nil {
		d.quality("calibration", "none")
	} else {
		d.quality("calibration", "%s", c)
	}
	if threshold > 0 {
		d.quality("threshold", "%.4g", threshold)
	}
}

// rows describes a file of package records.
func (d *described) rows(of records.Kind) error {
	if of == records.ScorePart {
		if _, err := predictions.ReadPart(d.Path); err != nil {
			return err
		}
	}
	h, rows, err := records.Look(d.Path, of, of != records.Unfinished)
	if of == records.Unfinished && err != nil { // it may be the work file of a part
		h, rows, err = records.Look(d.Path, records.ScorePart, false)
	}
	if err != nil {
		return err
	}
	json.Unmarshal(h.Parameters["producer"], &d.Producer) // if it is there
	var s summary.Sidecar
	if (of == records.ScorePart || of == records.Unfinished) && json.Unmarshal(h.About, &s) == nil {
		d.scored(&s)
	}
	d.from("processor", "%s", h.Processor)
	if of == records.Stored {
		var what string
		json.Unmarshal(h.Parameters["kind"], &what)
		d.from("holds", "%s, %s", what, report.Plural(rows, "row"))
		return nil
	}
	rest := "none of the rows"
	if h.Part.Rows() > 0 {
		rest = fmt.Sprintf("rows %d to %d of %s", h.Part.First, h.Part.End-1, report.Thousands(h.Part.All))
	}
	if h.Part.Of > 1 {
		rest = fmt.Sprintf("%d of %d: %s", h.Part.Index, h.Part.Of, rest)
	}
	d.from("part", "%s", rest)
	d.quality("rows", "%s of %s are there", report.Thousands(rows), report.Thousands(h.Part.Rows()))
	return nil
}

// store describes a folder of --store. It does not read the entries.
func (d *described) store() error {
	d.from("holds", "%s of networks", report.Plural(len(store.Entries(d.Path)), "result"))
	return nil
}

func (d *described) settings() error {
	js, err := file.Read(d.Path, ensemble.MaxSettings)
	if err != nil {
		return err
	}
	s, err := ensemble.ParseSettings(js)
	if err != nil {
		return file.Error(d.Path, err)
	}
	d.Producer = s.Producer
	d.from("posterior", "%s (%s)", s.Posterior.Path, short(s.Posterior.ID))
	d.from("settings", "%s", console.Shell(flags.Members(s.Settings)...))
	posterior := s.Posterior.Path
	if !filepath.IsAbs(posterior) {
		posterior = filepath.Join(filepath.Dir(d.Path), posterior)
	}
	d.Next = []string{console.Shell("swagwrap", "sample", "--settings", d.Path, "-o", "ensemble.safetensors", "--bn-data",
		"TRAIN", posterior)}
	chosen := struct {
		Chosen struct {
			NLL        *float64 `json:"nll"`
			Of         int      `json:"of_settings"`
			Examples   int      `json:"examples"`
			Validation []struct{ Path, SHA256 string }
		}
	}{}
	if json.Unmarshal(js, &chosen) != nil || chosen.Chosen.NLL == nil { // only shown: another program may have written it
		return nil
	}
	for _, v := range chosen.Chosen.Validation {
		d.from("chosen on", "%s (%s)", v.Path, short(v.SHA256))
	}
	d.quality("NLL", "%.4f on %s, the lowest of %s", *chosen.Chosen.NLL, report.Plural(chosen.Chosen.Examples, "example"),
		report.Plural(chosen.Chosen.Of, "setting"))
	return nil
}

// calibration describes what calibrate wrote without --ensemble.
func (d *described) calibration() error {
	js, err := file.Read(d.Path, ensemble.MaxSettings)
	if err != nil {
		return err
	}
	s := struct {
		task.Calibration
		Producer    string
		Task        string
		Rows        int
		Predictions struct{ Path, SHA256 string }
		Before      *float64 `json:"nll_before"`
		Fitted      *float64 `json:"nll_cross_fitted"`
		Seed        uint64
		Threshold   *calibration.Threshold
	}{}
	if err := json.Unmarshal(js, &s); err != nil {
		return file.Error(d.Path, err)
	}
	d.Producer = s.Producer
	d.from("fitted to", "%s (%s), %s, seed %d", s.Predictions.Path, short(s.Predictions.SHA256), report.Plural(s.Rows, "row"), s.Seed)
	d.from("task", "%s", s.Task)
	if s.Method == calibration.None {
		d.calibrated(nil, 0)
	} else {
		d.calibrated(&s.Calibration, 0)
	}
	if s.Threshold != nil {
		d.quality("threshold", "%s", s.Threshold)
	}
	if s.Before != nil && s.Fitted != nil {
		d.quality("NLL", "%.4f before, %.4f cross-fitted", *s.Before, *s.Fitted)
	}
	if path := s.Predictions.Path; path != "" {
		d.Next = []string{console.Shell("swagwrap", "calibrate", "-o", "calibrated.safetensors", "--ensemble", "ENSEMBLE", path)}
	}
	return nil
}

// sidecar describes what a sidecar says of predictions.
func (d *described) sidecar() error {
	s, err := summary.ReadSidecar(d.Path)
	if err == nil {
		d.made(s)
	}
	return err
}

func (d *described) made(s *summary.Sidecar) {
	d.scored(s)
	d.from("examples", "%s, %d with an error", report.Thousands(s.Rows), s.Errors)
}

// scored says how predictions were made.
func (d *described) scored(s *summary.Sidecar) {
	d.Producer = s.Program
	d.from("ensemble", "%s (%s)", s.Ensemble.Path, short(s.Ensemble.ID))
	d.sampling(s.Sampling, s.Components)
	for _, x := range s.Sources {
		d.from("data", "%s (%s)", x.Path, short(x.SHA256))
	}
	if len(s.Command) > 1 {
		d.from("command", "%s", console.Shell(append([]string{"swagwrap"}, s.Command[1:]...)...))
	}
	d.from("run by", "ONNX Runtime %s, %s", s.ONNXRuntime, s.Provider)
	d.calibrated(s.Applied(), s.Threshold)
}

// predictions describes predictions, and scores them if they have labels.
func (d *described) predictions() error {
	made := "ENSEMBLE"
	switch s, err := summary.ReadSidecar(d.Path + summary.Suffix); {
	case err == nil:
		d.made(s)
		made = s.Ensemble.Path
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	of := summary.TaskOf(d.Path)
	p, err := calibration.Read(d.Path, of, predictions.ReadOptions{})
	switch {
	case errors.Is(err, predictions.ErrNoTargets):
		d.unlabelled(made)
		return nil
	case err != nil:
		top, topErr := topLabels(d.Path)
		if topErr != nil {
			return errors.Join(err, topErr)
		}
		if len(top) > 0 {
			right := 0
			for _, t := range top {
				if t.Correct {
					right++
				}
			}
			d.quality("scores", "accuracy %.1f %%, ECE %.4f; NLL needs score --probs", 100*float64(right)/float64(len(top)),
				calibrate.TopLabelECE(top, calibrate.ECEOptions{}))
		}
		d.Next = []string{console.Shell("swagwrap", "score", "--probs", "-o", "val.npz", made, "VAL")}
		return nil
	}
	defer p.Close()
	e := task.NewEvaluator(p.Task, task.EvaluateOptions{MainOnly: true, NoLosses: true})
	known := false
	err = p.Each(func(k int, outcome []float64, label target.Target) error {
		known = known || label.Known()
		if err := e.Add(outcome, label); err != nil {
			return fmt.Errorf("row %d: %w", p.Rows[k], err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", d.Path, err)
	}
	if !known {
		d.unlabelled(made)
		return nil
	}
	d.quality("holds", "%s, %s", report.Plural(p.Len(), "labelled example"), p.Task.About().Size)
	if p.Saved != nil && p.Unused != nil {
		d.quality("left out", "%s, which nothing uses", numpy.Quote(p.Unused))
	}
	d.quality("scores", "%s", summary.Sentence(e.Evaluation()))
	d.Next = []string{console.Shell("swagwrap", "calibrate", "-o", "calibrated.safetensors", "--ensemble", made, d.Path)}
	return nil
}

// unlabelled says that predictions of the ensemble have no labels.
func (d *described) unlabelled(ensemble string) {
	d.quality("labels", "none")
	d.Next = []string{console.Shell("swagwrap", "calibrate", "-o", "calibrated.safetensors", "--ensemble", ensemble, "--labels",
		"LABELS", d.Path)}
}

// topLabels reads predictions that have no probabilities except those of the predicted class. It returns none if there
// are no labels.
func topLabels(path string) ([]calibrate.TopLabel, error) {
	rows, err := predictions.ReadRows(path, []predictions.Wanted{{Names: []string{"label"}}, {Names: []string{"prediction"}},
		{Names: []string{"confidence"}}})
	if err != nil {
		return nil, err
	}
	label, prediction, confidence := rows.Values["label"], rows.Values["prediction"], rows.Values["confidence"]
	if label == nil || prediction == nil || confidence == nil {
		return nil, nil
	}
	var top []calibrate.TopLabel
	for i := range rows.Len {
		if label[i] >= 0 && confidence[i] >= 0 {
			top = append(top, calibrate.TopLabel{Confidence: confidence[i], Correct: label[i] == prediction[i]})
		}
	}
	return top, nil
}

// pictures describes a folder of pictures. It fails if there are none.
func (d *described) pictures() error {
	all, err := listing.Read([]string{d.Path}, listing.Options{})
	if err != nil {
		return fmt.Errorf("%s: no checkpoints in this folder (nor below it), and as a folder of pictures: %w",
			d.Path, err)
	}
	d.from("holds", "%s", report.Plural(all.Len(), "picture"))
	d.Next = console.Next(d.Path, kind.Data)
	return nil
}

func (d *described) data() error {
	is, err := listing.KindOf(d.Path)
	if err != nil {
		return err
	}
	holds := map[listing.Kind]string{
		listing.KindImage:   "an image",
		listing.KindTar:     "a tar archive of images",
		listing.KindList:    "a table or a list of files",
		listing.KindListing: "a list of files, written by swagwrap list",
		listing.KindArray:   "arrays",
	}[is]
	if _, err := filelist.Open(d.Path); err != nil && strings.EqualFold(filepath.Ext(d.Path), filelist.Extension) {
		rows, err := predictions.ReadRows(d.Path, nil)
		if err != nil {
			return err
		}
		holds = "a table or a list of files with " + report.Plural(rows.Len, "row")
	}
	d.from("holds", "%s", holds)
	if is != listing.KindArray {
		return nil
	}
	f, err := numpy.Open(d.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	d.from("sha256", "%s", short(f.SHA256))
	keys := f.Keys
	if keys == nil {
		keys = []string{""}
	}
	for _, key := range keys[:min(len(keys), most)] {
		element, shape, err := f.Shape(key)
		if err != nil {
			return err
		}
		d.from("array", "%s", strings.TrimSpace(fmt.Sprintf("%s %s %v", key, element.Name, shape)))
	}
	return nil
}
