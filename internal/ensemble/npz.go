package ensemble

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"unicode/utf8"
)

// column is an array of an .npz file, whose rows come one after the other.
type column struct {
	name, dtype string // the type in NumPy's words
	shape       []int  // of a row
	append      func([]byte, *Row) []byte
}

// writeNPZ writes the rows as arrays, each in a pass over them, so that none has
// to be in memory. An example with an error has the prediction −1 and NaN in
// place of numbers.
func (t *Table) writeNPZ(w io.Writer, each func(func(*Row) error) error) error {
	columns, err := t.columns(each)
	if err != nil {
		return err
	}
	z := NewArchive(w)
	for _, c := range columns {
		out, err := z.begin(c.name, c.dtype, append([]int{t.data.Len()}, c.shape...)...)
		if err != nil {
			return err
		}
		var b []byte
		err = each(func(r *Row) error {
			if b = c.append(b, r); len(b) < 1<<16 {
				return nil
			}
			_, err := out.Write(b)
			b = b[:0]
			return err
		})
		if err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return z.Close()
}

// columns lists the arrays of the file.
func (t *Table) columns(each func(func(*Row) error) error) ([]column, error) {
	width := [2]int{1, 1} // of the longest path and error; NumPy has no empty strings
	err := each(func(r *Row) error {
		width[0] = max(width[0], utf8.RuneCountInString(t.data.Name(r.Index)))
		width[1] = max(width[1], utf8.RuneCountInString(r.Error))
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := []column{
		text("path", width[0], func(r *Row) string { return t.data.Name(r.Index) }),
		integers("prediction", 0, func(r *Row, _ int) int { return r.Prediction }),
		floats("confidence", 0, func(r *Row, _ int) float64 { return r.Confidence }),
		floats("predictive_entropy", 0, func(r *Row, _ int) float64 { return r.PredictiveEntropy }),
		floats("expected_entropy", 0, func(r *Row, _ int) float64 { return r.ExpectedEntropy }),
		floats("mutual_information", 0, func(r *Row, _ int) float64 { return r.MutualInformation }),
	}
	if t.labels != nil {
		list = append(list, integers("label", 0, func(r *Row, _ int) int { return t.labels[r.Index] }))
	}
	if k := t.Columns.Top; k > 1 {
		list = append(list,
			integers("top", k, func(r *Row, i int) int {
				if r.Error != "" {
					return -1
				}
				return r.Top[i].Class
			}),
			floats("top_probability", k, func(r *Row, i int) float64 { return r.Top[i].Probability }))
	}
	if t.Columns.Probabilities {
		list = append(list, floats("probs", t.Classes, func(r *Row, i int) float64 { return r.Probabilities[i] }))
	}
	if t.Columns.Members {
		list = append(list, column{"member_probs", "<f4", []int{t.Members, t.Classes}, func(b []byte, r *Row) []byte {
			for i := range t.Members * t.Classes {
				v := float32(math.NaN())
				if r.Error == "" {
					v = r.Members[i]
				}
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
			return b
		}})
	}
	if t.Errors {
		list = append(list, text("error", width[1], func(r *Row) string { return r.Error }))
	}
	return list, nil
}

// floats is a column of n numbers in each row, or of one where n is 0.
func floats(name string, n int, value func(r *Row, i int) float64) column {
	return eights(name, "<f8", n, func(r *Row, i int) uint64 {
		if r.Error != "" {
			return math.Float64bits(math.NaN())
		}
		return math.Float64bits(value(r, i))
	})
}

// integers is the same for whole numbers.
func integers(name string, n int, value func(r *Row, i int) int) column {
	return eights(name, "<i8", n, func(r *Row, i int) uint64 { return uint64(value(r, i)) })
}

// eights is a column of numbers of eight bytes.
func eights(name, dtype string, n int, bits func(r *Row, i int) uint64) column {
	c := column{name: name, dtype: dtype}
	if n > 0 {
		c.shape = []int{n}
	}
	c.append = func(b []byte, r *Row) []byte {
		for i := range max(n, 1) {
			b = binary.LittleEndian.AppendUint64(b, bits(r, i))
		}
		return b
	}
	return c
}

// text is a column of strings of at most n characters.
func text(name string, n int, value func(*Row) string) column {
	return column{name, fmt.Sprintf("<U%d", n), nil, func(b []byte, r *Row) []byte {
		end := len(b) + 4*n
		for _, c := range value(r) {
			b = binary.LittleEndian.AppendUint32(b, uint32(c))
		}
		return append(b, make([]byte, end-len(b))...)
	}}
}
