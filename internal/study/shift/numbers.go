package shift

import (
	"errors"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/corrupt"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// A damager returns data whose example i is damaged by at(i). how describes that for the ID.
type damager func(rows dataset.Dataset, kept *memory.Pool, at func(i int) spot, how ...any) (dataset.Dataset, error)

// damages returns what damages the data, and their kind. A text has numbers, too, such as a mask, and a table may have row
// numbers of a category, so that the first kind counts that fits.
func damages(test, clean dataset.Dataset) (damager, corrupt.Kind, error) {
	if dataset.Pictured(test) {
		return damagePictures, corrupt.Pictures, nil
	}
	fields := dataset.Fields(test)
	if fields == nil {
		fields = []dataset.Field{{Shape: test.Shape(), Type: "float32"}}
	}
	if k := textField(fields); k >= 0 {
		return func(rows dataset.Dataset, _ *memory.Pool, at func(int) spot, how ...any) (dataset.Dataset, error) {
			return damageTokens(rows, fields, k, at, how...)
		}, corrupt.Tokens, nil
	}
	if dataset.Unit(test) == "image" {
		return nil, "", errors.New("pictures that are normalised already cannot be damaged as cameras do: want image files, or arrays " +
			"of uint8 that are not normalised yet")
	}
	columns, err := describe(clean, fields)
	return func(rows dataset.Dataset, _ *memory.Pool, at func(int) spot, how ...any) (dataset.Dataset, error) {
		return dataset.Altered(rows, rows.Labels(), func(v dataset.Values, i int) {
			s := at(i)
			s.Row(v.Floats, columns, s.severity, s.seed, s.common)
		}, nil, append(how, columns)...), nil
	}, corrupt.Numbers, err
}

func damagePictures(rows dataset.Dataset, kept *memory.Pool, at func(int) spot, how ...any) (dataset.Dataset, error) {
	return dataset.Changed(rows, kept, func(p picture.Picture, i int) picture.Picture {
		s := at(i)
		return s.Picture(p, s.severity, s.seed)
	}, how...), nil
}

// describe returns the columns of the numbers of clean data.
func describe(clean dataset.Dataset, fields []dataset.Field) ([]corrupt.Column, error) {
	var columns []corrupt.Column
	free := false
	for k, f := range fields {
		fixed := f.Rows > 0 || f.Type == "uint8" || dataset.Decoded(clean, k)
		free = free || !fixed && f.Size().Floats > 0
		columns = append(columns, slices.Repeat([]corrupt.Column{{Fixed: fixed, Binary: true}}, f.Size().Floats)...)
	}
	if !free {
		return nil, errors.New("no pictures, no numbers and no lists of token ids: nothing that the corruptions are for")
	}
	size, err := dataset.SizeOf(clean)
	if err != nil {
		return nil, err
	}
	row := size.Make(1)
	for i := range clean.Len() {
		if err := clean.Read(row, i); err != nil {
			return nil, err
		}
		for k, v := range row.Floats { // Welford
			c, v := &columns[k], float64(v)
			d := v - c.Mean
			c.Mean += d / float64(i+1)
			c.Std += d * (v - c.Mean)
			c.Binary = c.Binary && (v == 0 || v == 1)
		}
	}
	for k := range columns {
		columns[k].Std = math.Sqrt(columns[k].Std / float64(clean.Len()))
	}
	return columns, nil
}
