package ensemble

import (
	"encoding/csv"
	"io"
	"strconv"
)

// csvWriter writes rows as CSV (RFC 4180, with line feeds). What an example with
// an error does not have is empty.
type csvWriter struct {
	t      *Table
	out    *csv.Writer
	fields []string
	width  int // columns
	begun  bool
}

// CSV returns a writer of CSV.
func (t *Table) CSV(w io.Writer) RowWriter {
	return &csvWriter{t: t, out: csv.NewWriter(w), width: len(t.Names())}
}

func (c *csvWriter) header() error {
	if c.begun {
		return nil
	}
	c.begun = true
	return c.out.Write(c.t.Names())
}

func (c *csvWriter) Write(r *Row) error {
	if err := c.header(); err != nil {
		return err
	}
	t := c.t
	f := append(c.fields[:0], t.data.Name(r.Index), "")
	if label := t.label(r.Index); label != nil {
		f[1] = strconv.FormatInt(*label, 10)
	}
	if r.Error == "" {
		f = append(f, strconv.Itoa(r.Prediction))
		if t.names != nil {
			f = append(f, t.names[r.Prediction])
		}
		f = append(f, number(r.Confidence), number(r.PredictiveEntropy), number(r.ExpectedEntropy), number(r.MutualInformation))
		if t.Columns.Top > 1 {
			for _, top := range r.Top {
				f = append(f, strconv.Itoa(top.Class))
				if t.names != nil {
					f = append(f, t.names[top.Class])
				}
				f = append(f, number(top.Probability))
			}
		}
		for _, v := range r.Probabilities {
			f = append(f, number(v))
		}
		for _, v := range r.Members {
			f = append(f, number(float64(v)))
		}
	}
	for len(f) < c.width {
		f = append(f, "")
	}
	if t.Errors {
		f[c.width-1] = r.Error
	}
	c.fields = f
	return c.out.Write(f)
}

func (c *csvWriter) Flush() error {
	c.out.Flush()
	return c.out.Error()
}

func (c *csvWriter) Close() error {
	if err := c.header(); err != nil {
		return err
	}
	return c.Flush()
}
