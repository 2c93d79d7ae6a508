package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// HoldsNothing reports whether [Open] failed since a whole file has no state_dict.
func HoldsNothing(err error) bool {
	var e *Error
	return errors.As(err, &e) && strings.HasPrefix(e.What, holdsNothing)
}

const holdsNothing = "holds no state_dict"

// SameNetwork reports whether two files have a state_dict of the same names and shapes in nearly all their weights.
func (f *File) SameNetwork(o *File) bool {
	return slices.ContainsFunc(f.dicts, func(a *StateDict) bool {
		return slices.ContainsFunc(o.dicts, func(b *StateDict) bool { return a.SameNetwork(b) })
	})
}

// SameNetwork reports whether two state_dicts have the same short names and shapes in nine tenths of their weights.
func (sd *StateDict) SameNetwork(o *StateDict) bool {
	shapes := make(map[string]int64, len(sd.Tensors))
	for _, t := range sd.Tensors {
		shapes[fmt.Sprint(t.Short, t.Shape)] = t.Len()
	}
	same := int64(0)
	for _, t := range o.Tensors {
		same += shapes[fmt.Sprint(t.Short, t.Shape)]
	}
	return same > 0 && 10*same >= 9*max(sd.Len(), o.Len())
}

// SameWeights reports whether two state_dicts have the same elements under the same short names. Batch-norm statistics do not count.
func (sd *StateDict) SameWeights(o *StateDict) bool {
	if !sd.SameNetwork(o) {
		return false
	}
	others := make(map[string]*Tensor, len(o.Tensors))
	for _, t := range o.Tensors {
		others[t.Short] = t
	}
	for _, t := range sd.Tensors {
		b := others[t.Short]
		if IsStatistic(t.Short) {
			continue
		}
		if b == nil || t.DType != b.DType || t.Len() != b.Len() || !bytes.Equal(t.Bytes(), b.Bytes()) {
			return false
		}
	}
	return true
}

// nameLists gives the tensors of lists, which have no names, those of another state_dict of the file. An average such as EMAModel of
// diffusers keeps the parameters in the order of the network, and no buffers. The names are given if one assignment by order and shape
// fits.
func (f *File) nameLists() {
	for i, sd := range f.dicts {
		if !sd.list() {
			continue
		}
		for _, o := range f.dicts {
			if o.list() {
				continue
			}
			if named := sd.named(o, f.Path); named != nil {
				f.dicts[i] = named
				break
			}
		}
	}
	f.dicts = slices.DeleteFunc(f.dicts, func(sd *StateDict) bool { return sd.list() && len(sd.all) > longList })
}

// longList is the length from which on a list without names is no state_dict.
const longList = 16

// list reports whether all names are the numbers of a list.
func (sd *StateDict) list() bool {
	for i, t := range sd.all {
		if t.Name != strconv.Itoa(i) {
			return false
		}
	}
	return len(sd.all) > 0 && sd.err == nil
}

// named returns the tensors of a list under the names of a network. What the list lacks, buffers and frozen weights, is that of the
// network. It returns nil if several assignments fit, or none.
func (sd *StateDict) named(of *StateDict, path string) *StateDict {
	first, last := assign(sd.all, of.Tensors), assign(reversed(sd.all), reversed(of.Tensors))
	if first == nil || last == nil {
		return nil
	}
	into := make(map[int]*Tensor, len(first))
	for i, at := range first {
		if at != len(of.Tensors)-1-last[len(last)-1-i] {
			return nil
		}
		into[at] = sd.all[i]
	}
	out := &StateDict{Key: sd.Key, average: sd.average}
	at := 0
	for _, t := range of.all {
		c := *t
		if at < len(of.Tensors) && of.Tensors[at].Name == t.Name {
			if l := into[at]; l != nil {
				c = *l
				c.Name, c.Short = t.Name, t.Short
			}
			at++
		}
		out.place(&c)
	}
	out.finish(path)
	return out
}

// assign returns the first places of a list's tensors among those of a network, in order. Batch-norm statistics are no parameters.
func assign(list, of []*Tensor) (at []int) {
	next := 0
	for _, t := range list {
		for next < len(of) && (IsStatistic(of[next].Name) || !slices.Equal(of[next].Shape, t.Shape)) {
			next++
		}
		if next == len(of) {
			return nil
		}
		at = append(at, next)
		next++
	}
	return at
}

func reversed(tensors []*Tensor) []*Tensor {
	out := slices.Clone(tensors)
	slices.Reverse(out)
	return out
}

// Normalises reports whether a state_dict of the file has batch-norm statistics and a weight of this name and shape.
func (f *File) Normalises(weight string, shape []int64) bool {
	return slices.ContainsFunc(f.dicts, func(sd *StateDict) bool {
		return slices.ContainsFunc(sd.Tensors, func(t *Tensor) bool { return strings.HasSuffix(t.Name, "running_var") }) &&
			slices.ContainsFunc(sd.Tensors, func(t *Tensor) bool {
				return slices.Equal(t.Shape, shape) && (strings.HasSuffix(t.Name, weight) || strings.HasSuffix(weight, t.Short))
			})
	})
}
