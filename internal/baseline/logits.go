package baseline

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

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
func SampleEvery(t task.Task, examples int) int {
	if !task.SpecOf(t).Next {
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

// Add appends the labelled positions of an example, whose outcome is given. It fails for a task without a temperature.
func (l *Logits) Add(t task.Task, outcome []float64, label target.Target) error {
	var failed error
	l.every = SampleEvery(t, l.examples)
	label = l.sample(label)
	l.classes = task.EachLogits(t, outcome, label, func(row []float64, label int) {
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
func (l *Logits) sample(label target.Target) target.Target {
	if l.every == 1 {
		return label
	}
	label.Classes = slices.Clone(label.Classes)
	for p, class := range label.Classes {
		if class == target.Unknown {
			continue
		}
		if l.seen%l.every != 0 {
			label.Classes[p] = target.Unknown
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
	c := task.OfTemperature(f)
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
