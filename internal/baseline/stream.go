package baseline

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/task/dense"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// Stream runs all models of a method over the data, and calls f with the average of each example in turn. f may change
// the outcome.
func (p *Predicted) Stream(ctx context.Context, run infer.Run, data dataset.Dataset, opts infer.Options, f func(t dense.Task, i int, a task.Average) error) error {
	s, err := infer.NewScorer(ctx, run.Engine, modelList(p.Models), data, opts)
	if err != nil {
		return err
	}
	t := s.Task().(dense.Task)
	return s.Run(ctx, 0, run.Progress, func(c *infer.Chunk) error {
		for i := range c.Len {
			if err := f(t, c.First+i, c.Average(c.Outcome[i*t.About().Width:][:t.About().Width], i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// modelList is a [infer.MemberSource] of models in memory.
type modelList []infer.Model

func (l modelList) Parts() (parts []infer.Part) {
	for _, m := range l {
		if last := len(parts) - 1; last >= 0 && parts[last].Graph == m.Graph {
			parts[last].Count++
		} else {
			parts = append(parts, infer.Part{Count: 1, Graph: m.Graph})
		}
	}
	return parts
}

func (l modelList) Each(_ context.Context, first, count int, f func(infer.Model) error) error {
	for _, m := range l[first:][:count] {
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// FitTemperature fits a temperature to all labelled positions of the data. It fails for a task without one.
func (p *Predicted) FitTemperature(ctx context.Context, run infer.Run, data dataset.Dataset) (*task.Calibration, error) {
	rows, err := NewLogits(data.Len())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	err = p.Stream(ctx, run, data, infer.Options{}, func(t dense.Task, i int, a task.Average) error {
		label, err := data.Labels().Load(i)
		if err == nil {
			err = t.CheckLabel(label)
		}
		if err == nil {
			err = rows.Add(t, a.Outcome, label)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", data.Name(i), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows.Fit(func(int) bool { return true })
}

// Logits holds log-probabilities and labels of the labelled positions of examples in a temporary file, 4 bytes for each
// number. Temperatures are fitted to them.
type Logits struct {
	classes  int
	examples int   // of all data
	ends     []int // rows up to the end of each example
	rows     int
	every    int // see [SampleEvery]
	seen     int // labelled positions
	file     *os.File
	out      *bufio.Writer
}

// most is the size of log-probabilities in bytes, above which a temperature is fitted to some of the tokens of a text.
// It decides the temperature, so it must not depend on the machine or on a limit. The rows are in a file.
var most = 1 << 29

// SampleEvery returns k if a temperature is fitted to every k-th labelled position of so many examples. It is 1, except for
// large vocabularies: the log-probabilities of all their tokens would fill disks.
func SampleEvery(t dense.Task, examples int) int {
	if !t.Spec().Next {
		return 1
	}
	return 1 + examples*task.Positions(t)*4*t.About().Classes/most
}

// NewLogits makes an empty file for so many examples. The caller closes it.
func NewLogits(examples int) (*Logits, error) {
	f, err := tempfile.Nameless(os.TempDir())
	if err != nil {
		return nil, tempfile.Temp(err)
	}
	return &Logits{examples: examples, file: f, out: bufio.NewWriterSize(f, 1<<20)}, nil
}

// Close closes the file, which then is gone: it has no name.
func (l *Logits) Close() { l.file.Close() }

// Add appends the labelled positions of an example, whose outcome is given.
func (l *Logits) Add(t dense.Task, outcome []float64, label truth.Truth) error {
	var failed error
	l.every = SampleEvery(t, l.examples)
	label = l.sample(label)
	l.classes = t.Logits(outcome, label, func(row []float64, label int) {
		var b [4]byte
		for _, v := range append(row, float64(label)) {
			binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(v)))
			if _, err := l.out.Write(b[:]); err != nil {
				failed = tempfile.Temp(err)
			}
		}
		l.rows++
	})
	l.ends = append(l.ends, l.rows)
	if l.classes == 0 {
		return fmt.Errorf("no temperature for the task %s", t.About().Name)
	}
	return failed
}

// sample returns the labels of every k-th labelled position.
func (l *Logits) sample(label truth.Truth) truth.Truth {
	if l.every == 1 {
		return label
	}
	label.Classes = slices.Clone(label.Classes)
	for p, class := range label.Classes {
		if class == truth.Unknown {
			continue
		}
		if l.seen%l.every != 0 {
			label.Classes[p] = truth.Unknown
		}
		l.seen++
	}
	return label
}

// Fit fits a temperature to all rows of the examples that use accepts.
func (l *Logits) Fit(use func(example int) bool) (*task.Calibration, error) {
	f, err := calibrate.FitTemperatureStream(l.classes, func(row func([]float64, int)) error { return l.each(use, row) })
	if err != nil {
		return nil, err
	}
	c := &task.Calibration{Method: task.ByTemperature, Temperature: f.T, Undetermined: f.Undetermined(), Contradicted: f.Contradicted()}
	if l.every > 1 { // tokens depend on each other, but a sample of them is one of all tokens of this text
		c.Error = f.Error * math.Sqrt(1-1/float64(l.every))
	}
	return c, nil
}

// each calls f with each row of the examples that use accepts.
func (l *Logits) each(use func(example int) bool, f func(logits []float64, label int)) error {
	if err := l.out.Flush(); err != nil {
		return tempfile.Temp(err)
	}
	b, row, from := make([]byte, 4*(l.classes+1)), make([]float64, l.classes+1), 0
	in := bufio.NewReaderSize(io.NewSectionReader(l.file, 0, int64(len(b))*int64(l.rows)), 1<<20)
	for i, end := range l.ends {
		rows := end - from
		from = end
		if !use(i) {
			if _, err := in.Discard(rows * len(b)); err != nil {
				return tempfile.Temp(err)
			}
			continue
		}
		for range rows {
			if _, err := io.ReadFull(in, b); err != nil {
				return tempfile.Temp(err)
			}
			for k := range row {
				row[k] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:])))
			}
			f(row[:l.classes:l.classes], int(row[l.classes]))
		}
	}
	return nil
}
