// Package conversion compares a model whose members compute in fewer bits with that in float32, on labelled examples. It fits the
// calibration and chooses the guarantees again.
//
// # Invariants
//
// All figures come from the models as they are written, run by ONNX Runtime. Both run on the same batches, one after the other.
package conversion

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/swagwrap/swagwrap/calibrate/detect"
	"github.com/swagwrap/swagwrap/calibrate/sets"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/calibration"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
)

// Study describes a conversion.
type Study struct {
	Engine *infer.Engine
	Data   dataset.Dataset // labelled examples
	Path   string          // of the data
	Folder string          // for files that are not kept
	// CPUSeconds returns the CPU time of the process.
	CPUSeconds func() float64
	Producer   string
	// Try runs the model at a path before this process does, and may be nil. Its error ends the study.
	Try func(ctx context.Context, path string) error

	labels target.Target
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// folds is the number of folds in which a calibration is scored.
const folds = 5

// Result is what became of an ensemble.
type Result struct {
	Calibration *task.Calibration
	Guarantee   *guarantee.Guarantee
	rows        []study.Row
	notes       []string
}

// side is one of the two models.
type side struct {
	name    string
	path    string
	bytes   int64
	names   []string
	shapes  [][]int // of an example
	values  [][]float64
	seconds float64
	of      *calibration.Predictions
}

// Run compares the model of full, in float32, with that of low, the same ensemble in fewer bits. name says which bits.
func (s *Study) Run(ctx context.Context, full, low *ensemble.Fused, name string) (*Result, error) {
	if err := s.usable(full.Ensemble); err != nil {
		return nil, err
	}
	var notes []string
	if low.Half {
		peak, err := low.Peak(ctx, s.Engine, s.Data)
		if err == nil {
			err = peak.Err(full.Ensemble.Path)
		}
		if err != nil {
			return nil, err
		}
		notes = append(notes, fmt.Sprintf("the largest number in the members is %.3g (%s), and float16 holds %d", peak.Value,
			peak.Tensor, onnxio.LargestHalf))
	}
	sides := []*side{{name: "float32"}, {name: name}}
	for i, of := range []*ensemble.Fused{full, low} {
		if err := s.write(ctx, of, sides[i]); err != nil {
			return nil, err
		}
		if s.Try != nil {
			if err := s.Try(ctx, sides[i].path); err != nil {
				return nil, err
			}
		}
	}
	if err := s.run(ctx, sides); err != nil {
		return nil, err
	}
	for _, m := range sides {
		if err := s.read(m, full.Task()); err != nil {
			return nil, fmt.Errorf("%s: in %s: %w", s.Path, m.name, err)
		}
	}
	return s.fit(&Result{notes: notes}, full.Ensemble, sides[0], sides[1])
}

// usable returns an error unless the ensemble predicts one label, or one set of labels or numbers, for each example.
func (s *Study) usable(e *ensemble.Ensemble) (err error) {
	rows := make([]int, s.Data.Len())
	for i := range rows {
		rows[i] = i
	}
	known, err := dataset.LoadRows(s.Data, rows)
	if err != nil {
		return err
	}
	for i := range rows {
		one, err := known.Load(i) // labels of positions are read one by one
		if err != nil {
			return err
		}
		s.labels.Classes, s.labels.Values = append(s.labels.Classes, one.Classes...), append(s.labels.Values, one.Values...)
	}
	if !s.labels.Known() {
		return fmt.Errorf("%s: has no labels", s.Path)
	}
	return e.Guarantee.Exportable()
}

// write writes the model without calibration and guarantees.
func (s *Study) write(ctx context.Context, j *ensemble.Fused, to *side) error {
	bare, plain := *j.Ensemble, *j
	bare.Calibration, bare.Guarantee, bare.Threshold = nil, nil, 0
	plain.Ensemble, plain.Figures = &bare, ""
	m, err := plain.Model(ctx, s.Engine)
	if err != nil {
		return err
	}
	to.path = filepath.Join(s.Folder, to.name+".onnx")
	var files []*os.File
	var buffers []*bufio.Writer
	err = plain.Write(ctx, m, filepath.Base(to.path), func(name string) (io.Writer, error) {
		f, err := os.Create(filepath.Join(s.Folder, name))
		if err != nil {
			return nil, err
		}
		files, buffers = append(files, f), append(buffers, bufio.NewWriterSize(f, 1<<20))
		return buffers[len(buffers)-1], nil
	}, s.Engine.Options().Threads, s.Engine.Memory())
	for i, f := range files {
		err = errors.Join(err, buffers[i].Flush())
		if info, failed := f.Stat(); failed == nil {
			to.bytes += info.Size()
		}
		err = errors.Join(err, f.Close())
	}
	j.Adopt(&plain)
	return err
}

// run runs both models on the examples. The order alternates from batch to batch.
func (s *Study) run(ctx context.Context, sides []*side) error {
	var sessions []*infer.Session
	for _, m := range sides {
		model, err := onnxio.Open(m.path)
		if err != nil {
			return err
		}
		defer model.Close()
		filled, err := model.Runtime()
		if err != nil {
			return err
		}
		for _, o := range model.Graph.Outputs {
			m.names = append(m.names, o.Name)
		}
		session, err := s.Engine.Open(ctx, nil, filled, m.names...)
		if err != nil {
			return err
		}
		defer session.Close()
		m.values, m.shapes = make([][]float64, len(m.names)), make([][]int, len(m.names))
		sessions = append(sessions, session)
	}
	batch := cmp.Or(s.Engine.Options().BatchSize, infer.DefaultBatchSize)
	for from := 0; from < s.Data.Len(); from += batch {
		rows := make([]int, min(batch, s.Data.Len()-from))
		for i := range rows {
			rows[i] = from + i
		}
		first := from / batch % len(sides)
		err := infer.FeedAll(ctx, sessions, s.Data, rows, first, func(k int, run func() ([]ort.Tensor, error)) error {
			m, start := sides[k], s.CPUSeconds()
			out, err := run()
			if err != nil {
				return fmt.Errorf("in %s: %w", m.name, err)
			}
			m.seconds += s.CPUSeconds() - start
			return m.add(out, len(rows))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// add takes the outputs of n examples.
func (m *side) add(out []ort.Tensor, n int) error {
	for k, o := range out {
		values, err := infer.Float32s(o)
		if err != nil {
			return err
		}
		m.shapes[k] = nil
		for _, d := range o.Shape[1:] {
			m.shapes[k] = append(m.shapes[k], int(d))
		}
		for _, v := range values[:n*len(values)/int(o.Shape[0])] {
			if v-v != 0 {
				return fmt.Errorf("%s: %s is %v: a number in the network is too large for %s", m.path, m.names[k], v, m.name)
			}
			m.values[k] = append(m.values[k], float64(v))
		}
	}
	return nil
}

// read gives what a model computed the form of saved predictions.
func (s *Study) read(m *side, t task.Task) (err error) {
	of, axis := t.About().Name, task.SpecOf(t).Axis
	path := m.path + ".npz"
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	a := predictions.NewArchive(f)
	n := s.Data.Len()
	for k, name := range m.names {
		if name == "prob" {
			name = map[target.Kind]string{target.Classes: "probs", target.Labels: "probabilities"}[task.TraitsOf(of).Labels]
		}
		if name != "entropy" && name != "mutual_information" {
			err = errors.Join(err, a.Floats(name, m.values[k], append([]int{n}, m.shapes[k]...)...))
		}
	}
	shape := []int{n}
	if axis != 0 { // a label for each position, which has its scores along an axis
		shape = append(shape, m.shapes[0]...)
		at := (axis + len(shape)) % len(shape)
		shape = append(shape[:at:at], shape[at+1:]...)
	}
	if known := s.labels; known.Classes != nil {
		err = errors.Join(err, a.Ints("labels", known.Classes, shape...))
	} else {
		name := map[target.Kind]string{target.Numbers: "targets", target.Labels: "labels"}[task.TraitsOf(of).Labels]
		err = errors.Join(err, a.Floats(name, known.Values, append(shape, len(known.Values)/product(shape))...))
	}
	if err = errors.Join(err, a.Close(), f.Close()); err != nil {
		return err
	}
	m.of, err = calibration.Read(path, of, predictions.ReadOptions{Axis: axis})
	return err
}

// fit fits the calibration to the model in fewer bits, and chooses its guarantees on other examples.
func (s *Study) fit(r *Result, e *ensemble.Ensemble, full, low *side) (*Result, error) {
	seed := e.Sampling.Seed
	on, rest := *low.of, *low.of
	if e.Calibration != nil && !e.Guarantee.Empty() {
		if low.of.Stored() {
			return nil, fmt.Errorf("%s: a calibration and a coverage of pixels or tokens need different examples", e.Path)
		}
		fit, other := sets.Split(low.of.Len(), 0.5, seed)
		on.Saved, rest.Saved = low.of.Part(fit), low.of.Part(other)
	}
	if c := e.Calibration; c != nil {
		found, err := s.found(r, calibration.Study{Method: c.Method, Folds: folds, Seed: seed, Fit: &on})
		if err != nil {
			return nil, err
		}
		r.Calibration = found.Fitted
		if !rest.Stored() {
			calibrated := *rest.Saved
			calibrated.Outcomes, calibrated.Logs = rest.Apply(found.Fitted), nil
			rest.Saved = &calibrated
		}
	}
	if g := e.Guarantee; !g.Empty() {
		again := calibration.Study{Method: calibration.None, Folds: folds, Seed: seed, Fit: &rest}
		again.Guarantee.Data = s.dataOf(low.of)
		if c := g.Coverage; c != nil {
			again.Guarantee.Amount = calibration.Amount{Level: c.Level, Size: c.Size}
			again.Guarantee.Method, again.Guarantee.By = c.Method, c.By
		}
		if g.Answers != nil {
			again.Criterion = detect.Criterion{Name: detect.ByRisk, Want: g.Answers.Risk}
		}
		found, err := s.found(r, again)
		if err != nil {
			return nil, err
		}
		r.Guarantee = found.Guarantee()
	}
	return r, s.table(r, e, full, low)
}

// found runs a fit, and notes what it found.
func (s *Study) found(r *Result, fit calibration.Study) (*calibration.Result, error) {
	found, err := fit.Run(s.Producer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	if why := found.Undetermined(); why != "" {
		return nil, fmt.Errorf("%s: %s is not determined: %s", s.Path, found.Fitted, why)
	}
	if err := found.NoAnswers(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Path, err)
	}
	r.notes = append(r.notes, found.Describe())
	return found, nil
}

// dataOf says which examples chose a guarantee.
func (s *Study) dataOf(p *calibration.Predictions) guarantee.Data {
	d := guarantee.Data{Name: filepath.Base(s.Path), SHA256: p.SHA256, Examples: p.Len(), Date: time.Now().UTC().Format(time.DateOnly)}
	for _, source := range s.Data.Sources() {
		d.Sources = append(d.Sources, source.SHA256)
	}
	return d
}

// table makes the rows of figures.
func (s *Study) table(r *Result, e *ensemble.Ensemble, full, low *side) error {
	add := func(name string, m *side, c *task.Calibration, g *guarantee.Guarantee) error {
		figures, held, err := m.of.Judge(c, g, e.Threshold)
		if err != nil {
			return fmt.Errorf("%s: in %s: %w", s.Path, m.name, err)
		}
		row := append(study.Row{study.Name("model", "model", name)}, study.Scores("", figures.Main())...)
		if held != nil && held.Coverage != nil {
			of, header := held.Coverage, "guarantee held [95 %]"
			if size := held.Size; size != nil { // the guarantee is of the mean size
				header = "labels in sets [95 %]"
				row = append(row, study.Number("set_size", "mean set size", size.Mean, report.Fixed(size.Mean, 3)))
			}
			row = append(row, study.Number("held", header, of.Covered,
				fmt.Sprintf("%s [%s, %s]", report.Percent(of.Covered, 1), report.Percent(of.Low, 1), report.Percent(of.High, 1))))
		}
		if held != nil && held.Wrong != nil {
			row = append(row, study.Number("wrong", "wrong answers", held.Wrong.Covered, report.Percent(held.Wrong.Covered, 2)),
				study.Number("answered", "answered", held.Answered, report.Percent(held.Answered, 1)))
		}
		r.rows = append(r.rows, append(row, study.Number("bytes", "MB", m.bytes, report.Fixed(float64(m.bytes)/1e6, 2)),
			study.Number("cpu", "CPU ms", m.seconds/float64(s.Data.Len()), report.Fixed(1e3*m.seconds/float64(s.Data.Len()), 3))))
		return nil
	}
	if err := add(full.name, full, e.Calibration, e.Guarantee); err != nil {
		return err
	}
	if e.Calibration == nil && e.Guarantee.Empty() {
		return add(low.name, low, nil, nil)
	}
	if err := add(low.name+", as float32", low, e.Calibration, e.Guarantee); err != nil {
		return err
	}
	return add(low.name+", fitted anew", low, r.Calibration, r.Guarantee)
}

// Tables returns the figures of the models.
func (r *Result) Tables() []*report.Table {
	section := study.Section{Rows: r.rows}
	section.Note("CPU ms: of an example, by both models in turn. What is fitted anew is judged on the examples that it was fitted to")
	return []*report.Table{section.Table()}
}

// Notes say what was fitted.
func (r *Result) Notes() []string { return r.notes }
