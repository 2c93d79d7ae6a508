package predictions

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/task"
)

// jsonlWriter writes one JSON object per line. For an example with an error, numbers are null, and lists and names are
// left out.
type jsonlWriter struct {
	schema  *Schema
	classes bool // there is a key for class numbers
	fields  []field
	out     io.Writer
	line    bytes.Buffer
	texts   *json.Encoder // into the line
}

func newJSONL(w io.Writer, s *Schema) *jsonlWriter {
	j := &jsonlWriter{schema: s, classes: s.classes(), fields: s.fields(), out: w}
	j.texts = json.NewEncoder(&j.line)
	j.texts.SetEscapeHTML(false)
	return j
}

func (j *jsonlWriter) Write(r *Row) error {
	j.line.Reset()
	j.line.WriteString(`{"path":`)
	j.encode(r.Path)
	if j.classes {
		var label any
		if r.Label >= 0 {
			label = r.Label
		}
		j.pair("label", label)
	}
	for i := range j.fields {
		f := &j.fields[i]
		switch {
		case r.Error == "":
			j.field(f, f.values(r))
		case f.Shape == nil:
			j.pair(f.Name, nil)
		}
	}
	if r.Error != "" {
		j.pair("error", r.Error)
	}
	j.line.WriteString("}\n")
	_, err := j.out.Write(j.line.Bytes())
	return err
}

func (j *jsonlWriter) encode(v any) {
	j.texts.Encode(v)                 // a Buffer takes everything
	j.line.Truncate(j.line.Len() - 1) // without the line end
}

// pair writes a key and its value. The key must not need escapes.
func (j *jsonlWriter) pair(key string, v any) {
	j.line.WriteString(`,"` + key + `":`)
	if n, ok := v.(json.Number); ok { // most values are; this avoids the slow encoder
		j.line.WriteString(string(n))
	} else {
		j.encode(v)
	}
}

// jsonTop is an element of a ranking.
type jsonTop struct {
	Class       int    `json:"class"`
	Name        string `json:"name,omitempty"`
	Probability any    `json:"probability"`
}

func (j *jsonlWriter) field(f *field, values []float64) {
	names := j.schema.ClassNames
	switch f.Kind {
	case task.Subset:
		j.pair(f.Name, members(values))
		return
	case task.Flag:
		j.pair(f.Name, values[0] != 0)
		return
	}
	if f.Kind != task.Ranked {
		shape := f.Shape
		if f.Ragged {
			for len(values) > 0 && math.IsNaN(values[len(values)-1]) {
				values = values[:len(values)-1]
			}
			shape = []int{len(values)}
		}
		j.pair(f.Name, f.json(values, shape))
		if f.named != "" {
			j.pair(f.named, names[int(values[0])])
		}
		return
	}
	var list []jsonTop
	for top := range slices.Chunk(values, 2) {
		x := jsonTop{Class: int(top[0]), Probability: json.Number(number(top[1]))}
		if names != nil {
			x.Name = names[x.Class]
		}
		list = append(list, x)
	}
	j.pair(f.Name, list)
}

// json returns a number, or nested lists with one level per dimension. NaN and infinities are null.
func (f *field) json(values []float64, shape []int) any {
	switch {
	case len(shape) == 0 && values[0]-values[0] != 0:
		return nil
	case len(shape) == 0 && f.Kind == task.Class:
		return int(values[0])
	case len(shape) == 0:
		return json.Number(number(values[0]))
	case len(values) == 0: // a window of a text of which nothing counts
		return []any{}
	}
	var list []any
	for part := range slices.Chunk(values, len(values)/shape[0]) {
		list = append(list, f.json(part, shape[1:]))
	}
	return list
}

func (j *jsonlWriter) Close() error { return nil }
