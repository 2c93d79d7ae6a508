package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/onnxio"
)

// mostPairs is the largest number of raw examples that are compared.
const mostPairs = 32

// Pairs returns the raw examples as pictures with the tensors of an input of the graph. It returns nil if the file has none.
func (f *File) Pairs(m *onnxio.Model, input string) (*preprocess.Pairs, error) {
	inputs := m.FeedInputs()
	for i, v := range inputs {
		key, ok := f.find(v.Name, "inputs", i, len(inputs) == 1)
		if v.Name != input || !ok || len(f.Raw) == 0 {
			continue
		}
		a := f.arrays[key]
		if len(a.Shape) != 4 || a.Shape[0] < len(f.Raw) {
			return nil, fmt.Errorf("%s: array %q: shape %d, want a tensor for each of %d raw examples", f.Path, key, a.Shape, len(f.Raw))
		}
		raw := f.Raw[:min(len(f.Raw), mostPairs)]
		p := &preprocess.Pairs{Shape: a.Example(), Files: raw, Rounding: 5e-7}
		if a.Type.Kind == 'f' && a.Type.Size == 2 {
			p.Rounding = 1e-3
		}
		all := a.Float64s()
		for i := range raw {
			p.Tensors = append(p.Tensors, part(all, a.Shape[0], i))
		}
		return p, nil
	}
	return nil, nil
}

// Columns returns the names of the columns that an input of the graph takes, in the order of the input. The raw examples must be rows.
// note says why rows do not tell the columns.
func (f *File) Columns(m *onnxio.Model, input string) (names []string, note string) {
	rows := f.rows()
	inputs := m.FeedInputs()
	key, ok := f.find(input, "inputs", 0, len(inputs) == 1)
	if rows == nil || !ok || inputs[0].Name != input {
		return nil, ""
	}
	a := f.arrays[key]
	if len(a.Shape) != 2 || a.Shape[0] < len(rows) {
		return nil, ""
	}
	all := slices.Sorted(maps.Keys(rows[0]))
	for k := range a.Shape[1] {
		values := make([]float64, len(rows))
		for i := range rows {
			values[i] = a.Float64(i*a.Shape[1] + k)
		}
		equal := matching(all, rows, func(x []float64) bool {
			return slices.EqualFunc(x, values, func(x, v float64) bool { return float32(x) == float32(v) || x != x && v != v })
		})
		if len(equal) > 1 {
			return nil, fmt.Sprintf("the columns %s have the same numbers in its rows, and cannot be told from each other",
				numpy.Quote(equal))
		}
		if len(equal) == 0 {
			if scaled := matching(all, rows, func(x []float64) bool { return onLine(x, values) }); len(scaled) == 1 {
				return nil, fmt.Sprintf("the network takes the column %q scaled, as number %d of an example: tables for it need scaled "+
					"numbers", scaled[0], k)
			}
			return nil, fmt.Sprintf("none of the columns of its rows has number %d of the examples: tables for the network need what the "+
				"loader makes of the rows", k)
		}
		names = append(names, equal[0])
	}
	return names, ""
}

// rows returns the raw examples as rows of numbers. It returns nil if they are something else.
func (f *File) rows() (rows []map[string]float64) {
	for _, raw := range f.Raw {
		var row map[string]any
		// Python writes NaN, which is no JSON.
		if json.Unmarshal(bytes.ReplaceAll(raw, []byte(": NaN"), []byte(": null")), &row) != nil {
			return nil
		}
		numbers := map[string]float64{}
		for name, v := range row {
			switch v := v.(type) {
			case float64:
				numbers[name] = v
			case bool:
				numbers[name] = map[bool]float64{true: 1}[v]
			case nil:
				numbers[name] = math.NaN()
			}
		}
		rows = append(rows, numbers)
	}
	return rows
}

// matching returns the columns whose numbers in all rows are as wanted.
func matching(names []string, rows []map[string]float64, want func(x []float64) bool) (found []string) {
	for _, name := range names {
		var x []float64
		for _, row := range rows {
			if v, ok := row[name]; ok {
				x = append(x, v)
			}
		}
		if len(x) == len(rows) && want(x) {
			found = append(found, name)
		}
	}
	return found
}

// onLine reports whether values are on a line through the numbers, as scaling makes them.
func onLine(x, values []float64) bool {
	low, high := 0, 0
	for i, v := range x {
		if v < x[low] {
			low = i
		}
		if v > x[high] {
			high = i
		}
	}
	if len(x) < 4 || !(x[low] < x[high]) || values[low] == values[high] {
		return false
	}
	slope := (values[high] - values[low]) / (x[high] - x[low])
	for i, v := range x {
		if !(math.Abs(values[low]+slope*(v-x[low])-values[i]) <= 1e-5*math.Abs(values[high]-values[low])) {
			return false
		}
	}
	return true
}
