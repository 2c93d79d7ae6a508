package dataset

import (
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/target"
)

// padding says how the values of an example show which of its positions only fill it up.
type padding struct {
	masks []filling // a mask decides alone
	pads  []filling // fields whose filling the model card knows
	kind  target.Kind
}

// filling is what a field holds at a position that only fills up an example.
type filling struct {
	field int
	value float64
}

// findPadding returns the padding of examples with the fields, or nil if nothing tells it. A mask is a field that the model card fills up
// and whose name says so, or the mask of Transformers beside token ids. Masks of other names have 1 for tokens, or for padding.
func findPadding(fields []Field, opts Options) *padding {
	p := &padding{kind: opts.Target}
	for i, f := range fields {
		value, padded := opts.Pad[f.Name]
		switch {
		case padded && Given(f.Name) == "mask":
			p.masks = append(p.masks, filling{i, value})
		case padded && Given(f.Name) == "":
			p.pads = append(p.pads, filling{i, value})
		case !padded && f.isTokenMask() && slices.ContainsFunc(fields, func(o Field) bool {
			return Given(o.Name) == "" && o.Ints() && slices.Equal(o.Shape, f.Shape)
		}):
			p.masks = append(p.masks, filling{i, 0})
		}
	}
	if p.masks == nil && p.pads == nil {
		return nil
	}
	return p
}

// isTokenMask reports whether a field is named as the masks of Transformers, which are 0 at padding.
func (f Field) isTokenMask() bool {
	name := strings.ToLower(f.Name)
	return len(f.Shape) == 1 && (name == "mask" || strings.HasSuffix(name, "attention_mask") || strings.HasSuffix(name, "input_mask"))
}

// Own reports which of the n positions of example i are its own. The others fill it up, and count nowhere: those behind the end of its
// list, those that a mask leaves out, and, without a mask, those at both ends that hold what fills up lists and have no label. v has the
// values of the example, if they are at hand. nil stands for all.
func Own(d Dataset, v Values, i, n int) []bool {
	own := slices.Repeat([]bool{true}, n)
	if end := positionsUsed(d, i, n); end > 0 {
		clear(own[min(end, n):])
	}
	if p := examplesIn(d).padding; p != nil && len(v.Floats)+len(v.Ints) > 0 {
		p.mark(own, fieldsOf(d), v, d.Labels(), i)
	}
	if !slices.Contains(own, true) || !slices.Contains(own, false) { // an example without any position of its own counts as a whole
		return nil
	}
	return own
}

// positionsUsed returns the number of the n positions of example i that its longest list has, or 0 if lists are not filled up.
func positionsUsed(d Dataset, i, n int) int {
	if e, ok := d.(interface{ positionsUsed(i, n int) int }); ok {
		return e.positionsUsed(i, n)
	}
	return Positions(d, i)
}

// fieldsOf returns the fields of d. The only input of a network is a field too.
func fieldsOf(d Dataset) []Field {
	if fields := Fields(d); fields != nil {
		return fields
	}
	return []Field{{Shape: d.Shape(), Type: "float32"}}
}

// mark clears the positions that only fill up example i.
func (p *padding) mark(own []bool, fields []Field, v Values, labels target.Target, i int) {
	by := p.pads
	if p.masks != nil {
		by = p.masks
	}
	by = slices.DeleteFunc(slices.Clone(by), func(f filling) bool {
		shape := fields[f.field].Shape
		return len(shape) == 0 || int(shape[0]) != len(own) // not one for each position
	})
	if len(by) == 0 {
		return
	}
	fills := func(at int) bool {
		return !slices.ContainsFunc(by, func(f filling) bool {
			one, each := v.Field(fields, f.field), product(fields[f.field].Shape)/len(own)
			return !one.all(at*each, (at+1)*each, f.value)
		})
	}
	if p.masks != nil {
		for at := range own {
			own[at] = own[at] && !fills(at)
		}
		return
	}
	known := p.known(labels, i, len(own))
	for at := 0; at < len(own) && (!own[at] || fills(at) && !known(at)); at++ {
		own[at] = false
	}
	for at := len(own) - 1; at >= 0 && (!own[at] || fills(at) && !known(at)); at-- {
		own[at] = false
	}
}

// known returns a function that reports whether a position has a label.
func (p *padding) known(labels target.Target, i, n int) func(at int) bool {
	none := func(int) bool { return false }
	if labels.None() {
		return none
	}
	one := labels.At(i)
	switch {
	case len(one.Classes) == n:
		return func(at int) bool { return one.Classes[at] != target.Unknown }
	case one.Width > 0 && len(one.Values) == n*one.Width:
		return func(at int) bool {
			return slices.ContainsFunc(one.Values[at*one.Width:][:one.Width], func(v float64) bool {
				return v == v && (p.kind != target.Labels || v != target.Unknown)
			})
		}
	}
	return none
}

// all reports whether the numbers from … to−1 have the given value.
func (v Values) all(from, to int, value float64) bool {
	for k := from; k < to; k++ {
		if len(v.Ints) > 0 && float64(v.Ints[k]) != value || len(v.Ints) == 0 && v.Floats[k] != float32(value) {
			return false
		}
	}
	return true
}
