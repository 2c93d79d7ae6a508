package predictions

import (
	"bufio"
	"io"
	"os"

	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/weights"
)

// Kept has the probabilities of rows, for several passes over them.
type Kept struct {
	width  int
	values []float32
	file   *os.File // has those before values; nil if there are none
	rows   int      // in the file
}

// keptValues is the largest number of probabilities in memory. It is a variable for tests.
var keptValues = 1 << 23

// Keep keeps the column probs of all rows without an error. The caller closes what it returns.
func (s *Schema) Keep(each func(func(*Row) error) error) (*Kept, error) {
	k := &Kept{}
	var out *bufio.Writer
	flush := func() error {
		if k.file == nil {
			var err error
			if k.file, err = tempfile.Temporary(); err != nil {
				return err
			}
			out = bufio.NewWriterSize(k.file, 1<<20)
		}
		err := weights.WriteFloats(out, k.values)
		k.rows, k.values = k.rows+len(k.values)/k.width, k.values[:0]
		return err
	}
	err := each(func(r *Row) error {
		if r.Error != "" {
			return nil
		}
		for c, values := range s.All(r) {
			if c.Name != "probs" {
				continue
			}
			k.width = len(values)
			for _, v := range values {
				k.values = append(k.values, float32(v))
			}
		}
		if len(k.values) > keptValues {
			return flush()
		}
		return nil
	})
	if err == nil && out != nil {
		err = out.Flush()
	}
	if err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// Each calls use with the probabilities of each row. use does not keep its argument.
func (k *Kept) Each(use func(p []float64) error) error {
	p := make([]float64, k.width)
	give := func(row []float32) error {
		for c, v := range row {
			p[c] = float64(v)
		}
		return use(p)
	}
	if k.file != nil {
		in := bufio.NewReaderSize(io.NewSectionReader(k.file, 0, 1<<62), 1<<20)
		b, row := make([]byte, 4*k.width), make([]float32, k.width)
		for range k.rows {
			if _, err := io.ReadFull(in, b); err != nil {
				return err
			}
			weights.F32.Float32s(row, b)
			if err := give(row); err != nil {
				return err
			}
		}
	}
	for i := 0; i < len(k.values); i += k.width {
		if err := give(k.values[i : i+k.width]); err != nil {
			return err
		}
	}
	return nil
}

// Close removes the file on disk, if there is one.
func (k *Kept) Close() {
	if k.file != nil {
		tempfile.Remove(k.file.Name())
		k.file.Close()
	}
}
