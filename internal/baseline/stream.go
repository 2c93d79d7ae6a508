package baseline

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// Stream runs all models of a method over the data, and calls f with the average of each example in turn. f may change
// the outcome.
func (p *Predicted) Stream(ctx context.Context, e *infer.Engine, data dataset.Dataset, f func(t task.Dense, i int, a task.Average) error) error {
	s, err := infer.NewScorer(ctx, e, modelList(p.Models), data, infer.Options{})
	if err != nil {
		return err
	}
	t := s.Task().(task.Dense)
	return s.Run(ctx, 0, func(c *infer.Chunk) error {
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

// FitTemperature fits a temperature to all labelled positions of the data, which a temporary file holds: 4 bytes for
// each class of a position. It fails for a task without one.
func (p *Predicted) FitTemperature(ctx context.Context, e *infer.Engine, data dataset.Dataset) (*task.Calibration, error) {
	rows, err := newLogits()
	if err != nil {
		return nil, err
	}
	defer rows.close()
	err = p.Stream(ctx, e, data, func(t task.Dense, i int, a task.Average) error {
		label, err := data.Labels().Load(i)
		if err == nil {
			err = t.CheckLabel(label)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", data.Name(i), err)
		}
		if rows.classes = t.Logits(a.Outcome, label, rows.add); rows.classes == 0 {
			return fmt.Errorf("no temperature for the task %s", t.About().Name)
		}
		return rows.failed
	})
	if err != nil {
		return nil, err
	}
	f, err := calibrate.FitTemperatureStream(rows.classes, rows.each)
	if err != nil {
		return nil, err
	}
	return &task.Calibration{Method: task.ByTemperature, Temperature: f.T, AtBound: f.AtBound, Warnings: f.Warnings()}, nil
}

// logits holds rows of log-probabilities in a temporary file.
type logits struct {
	classes int
	file    *os.File
	out     *bufio.Writer
	failed  error
}

func newLogits() (*logits, error) {
	f, err := tempfile.Temporary()
	if err != nil {
		return nil, err
	}
	return &logits{file: f, out: bufio.NewWriterSize(f, 1<<20)}, nil
}

func (l *logits) close() { l.file.Close() }

// add appends a row. The label takes the place of one number more.
func (l *logits) add(row []float64, label int) {
	var b [4]byte
	for _, v := range append(row, float64(label)) {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(float32(v)))
		if _, err := l.out.Write(b[:]); err != nil {
			l.failed = tempfile.Temp(err)
		}
	}
}

// each calls use with each row in turn.
func (l *logits) each(use func(logits []float64, label int)) error {
	err := l.out.Flush()
	if err == nil {
		_, err = l.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return tempfile.Temp(err)
	}
	in, b, row := bufio.NewReaderSize(l.file, 1<<20), make([]byte, 4*(l.classes+1)), make([]float64, l.classes+1)
	for {
		if _, err := io.ReadFull(in, b); err == io.EOF {
			return nil
		} else if err != nil {
			return tempfile.Temp(err)
		}
		for k := range row {
			row[k] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*k:])))
		}
		use(row[:l.classes:l.classes], int(row[l.classes]))
	}
}
