package predictions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
)

// jsonlWriter writes an object in each line. Of an example with an error what is a
// number is null, and lists and names are left out.
type jsonlWriter struct {
	schema  *Schema
	classes bool // there is a key for their numbers
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
	j.line.Truncate(j.line.Len() - 1) // the line end behind it
}

// pair writes a key, which needs no escapes, and its value.
func (j *jsonlWriter) pair(key string, v any) {
	j.line.WriteString(`,"` + key + `":`)
	if n, ok := v.(json.Number); ok { // most are: no need to ask what they are
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
	if f.Kind != task.Ranked {
		j.pair(f.Name, f.json(values, f.Shape))
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

// json returns a number, or lists as deep as there are dimensions. What no number
// of JSON says is null.
func (f *field) json(values []float64, shape []int) any {
	switch {
	case len(shape) == 0 && values[0]-values[0] != 0:
		return nil
	case len(shape) == 0 && f.Kind == task.Class:
		return int(values[0])
	case len(shape) == 0:
		return json.Number(number(values[0]))
	}
	var list []any
	for part := range slices.Chunk(values, len(values)/shape[0]) {
		list = append(list, f.json(part, shape[1:]))
	}
	return list
}

func (j *jsonlWriter) Close() error { return nil }

// readJSONL reads an object in each line.
func readJSONL(f io.Reader) (table, error) {
	r := jsonReader{}
	in := json.NewDecoder(bufio.NewReaderSize(f, 1<<16))
	for row := 0; ; row++ {
		var object map[string]json.RawMessage
		err := in.Decode(&object)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = r.read(object)
		}
		if err != nil {
			return table{}, fmt.Errorf("row %d: %w", row, err)
		}
	}
	if r.classes == 0 {
		return table{}, errors.New("no row has predictions")
	}
	return r.table, nil
}

// jsonReader collects rows.
type jsonReader struct {
	table
	list    string // with the predictions, or empty for
	columns columns
	held    int // rows without values before the first with some
}

// read takes in a row. The first with values says how many there are.
func (r *jsonReader) read(object map[string]json.RawMessage) (err error) {
	if r.classes == 0 {
		if err := r.find(object); err != nil {
			if _, failed := object["error"]; failed { // score could not read the example
				r.held++
				return nil
			}
			return err
		}
	}
	values, err := r.numbers(object)
	if err != nil {
		return err
	}
	if r.classes == 0 && len(values) == 0 {
		r.held++
		return nil
	}
	if r.classes == 0 {
		r.classes = len(values)
		r.values, r.labels = missing(r.held*r.classes), slices.Repeat([]int{-1}, r.held)
	}
	label := -1
	for _, name := range numpy.Labels.Names {
		if raw, ok := object[name]; ok && string(raw) != "null" {
			if label, err = parseLabel(string(raw)); err != nil {
				return err
			}
			break
		}
	}
	r.values, r.labels = append(r.values, values...), append(r.labels, label)
	return nil
}

// find finds the list with the predictions, or else columns.
func (r *jsonReader) find(object map[string]json.RawMessage) (err error) {
	var keys []string
	for k := range object {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if err := onlyClasses(keys); err != nil {
		return err
	}
	for _, name := range predictionNames {
		i := slices.IndexFunc(keys, func(k string) bool { return strings.EqualFold(k, name) })
		if i >= 0 && bytes.HasPrefix(object[keys[i]], []byte("[")) {
			r.list, r.table = keys[i], listTable(keys[i])
			return nil
		}
	}
	if r.columns, err = findColumns(keys); err != nil {
		return errors.New("no list probs or logits, and no p_0, p_1 … (score writes probs with --probs)")
	}
	r.table = r.columns.table()
	r.classes = 0 // until there are values
	return nil
}

// numbers returns those of a row, NaN for what is null.
func (r *jsonReader) numbers(object map[string]json.RawMessage) ([]float64, error) {
	var values []*float64
	if r.list == "" {
		for class := range r.columns.classes {
			var x *float64
			for _, key := range []string{fmt.Sprintf("%s_%d", r.columns.name, class), fmt.Sprintf("%s%d", r.columns.name, class)} {
				if raw, ok := object[key]; ok {
					if err := json.Unmarshal(raw, &x); err != nil {
						return nil, fmt.Errorf("%q: %.40s, want a number", key, raw)
					}
				}
			}
			values = append(values, x)
		}
	} else if raw := object[r.list]; raw == nil || string(raw) == "null" {
		return missing(r.classes), nil
	} else if err := json.Unmarshal(raw, &values); err != nil {
		return nil, fmt.Errorf("%q: want a list of numbers", r.list)
	}
	if r.classes > 0 && len(values) != r.classes {
		return nil, fmt.Errorf("%d predictions, want %d as in the rows before", len(values), r.classes)
	}
	out := missing(len(values))
	for i, x := range values {
		if x != nil {
			out[i] = *x
		}
	}
	return out, nil
}

func missing(n int) []float64 { return slices.Repeat([]float64{math.NaN()}, n) }
