package weights

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Role says how the posterior treats a tensor.
type Role uint8

const (
	// Constant tensors are equal in every checkpoint and are copied verbatim.
	Constant Role = iota
	// Parameter tensors form the vector that the posterior is over.
	Parameter
	// Statistic tensors are batch norm's running mean and variance. They are never part of the posterior. They are
	// recomputed for every member.
	Statistic
	// Buffer tensors are other state that is no weight, such as the vectors u and v
	// of spectral norm. They are never part of the posterior. A member has those of
	// the last checkpoint, or new ones that follow from its weights.
	Buffer
)

var roles = [...]string{Constant: "constant", Parameter: "parameter", Statistic: "statistic", Buffer: "buffer"}

func (r Role) String() string { return roles[r] }

// Vector returns the role that stands for the flat vector of role r. Statistics and buffers share one vector: the
// state that a checkpoint keeps besides its weights.
func (r Role) Vector() Role {
	if r == Buffer {
		return Statistic
	}
	return r
}

// MarshalText writes the role's name.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the role's name.
func (r *Role) UnmarshalText(b []byte) error {
	i := slices.Index(roles[:], string(b))
	if i < 0 {
		return fmt.Errorf("role %q: want parameter, statistic, buffer or constant", b)
	}
	*r = Role(i)
	return nil
}

// Tensor is one entry of a [Layout].
type Tensor struct {
	Name  string  `json:"name"`
	Shape []int64 `json:"shape"`
	DType DType   `json:"dtype"` // as stored in the ONNX file
	Role  Role    `json:"role"`
	// Offset is the index of the first element in the flat vector of the tensor's role: see [Role.Vector]. It is 0
	// for constants, which are in no vector.
	Offset int64 `json:"offset"`
	// Tied names another parameter that holds this tensor's elements in the same order. A tied tensor has no place of
	// its own in the vector. The shapes may differ. If Transposed is set, both are matrices, and this tensor is the
	// transpose of the other.
	Tied       string `json:"tied,omitempty"`
	Transposed bool   `json:"transposed,omitempty"`
	// Reason says, for people, why the tensor has its role. It is empty if the role follows from the definition
	// alone.
	Reason string `json:"reason,omitempty"`
}

// Len returns the number of elements.
func (t Tensor) Len() int64 {
	n, _ := Elements(t.Shape)
	return n
}

// Elements returns the number of elements of a tensor of the given shape. It
// fails on negative dimensions and on products beyond int64.
func Elements(shape []int64) (int64, error) { return Within(shape, math.MaxInt64/8) }

// Within is [Elements] for a tensor that may have at most so many elements. A file may name any sizes. So whatever takes
// memory for a shape calls one of them first.
func Within(shape []int64, most int64) (int64, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v: negative dimension", shape)
		}
		if d != 0 && n > most/d {
			return 0, fmt.Errorf("shape %v: too many elements, want at most %d", shape, most)
		}
		n *= d
	}
	return n, nil
}

// Layout is the ordered list of a network's tensors. Build one with
// [NewLayout]; the zero value is an empty network.
type Layout struct {
	Tensors []Tensor `json:"tensors"`

	lens   [len(roles)]int64
	byName map[string]int // place in Tensors
}

// NewLayout assigns offsets to the tensors in their order, counted separately for each vector. It checks names and
// shapes. A tied tensor gets the offset of the tensor that it is tied to, which must come before it.
func NewLayout(tensors []Tensor) (*Layout, error) {
	l := &Layout{Tensors: slices.Clone(tensors), byName: make(map[string]int, len(tensors))}
	for i := range l.Tensors {
		t := &l.Tensors[i]
		if _, twice := l.byName[t.Name]; twice {
			return nil, fmt.Errorf("tensor %q: listed twice", t.Name)
		}
		l.byName[t.Name] = i
		if t.Shape == nil {
			t.Shape = []int64{} // a scalar's shape is empty, also in JSON
		}
		n, err := Elements(t.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if t.Role == Constant {
			t.Offset = 0
			continue
		}
		if !t.DType.IsFloat() {
			return nil, fmt.Errorf("tensor %q: %s %v, want a float type", t.Name, t.Role, t.DType)
		}
		if t.Tied != "" || t.Transposed {
			if err := l.tie(t, i); err != nil {
				return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
			}
			continue
		}
		length := &l.lens[t.Role.Vector()]
		t.Offset = *length
		if *length += n; *length < 0 {
			return nil, errors.New("layout has too many elements")
		}
	}
	return l, nil
}

// tie gives t, the tensor at index place, the offset of the tensor that it names, which must come before it.
func (l *Layout) tie(t *Tensor, place int) error {
	i, ok := l.byName[t.Tied]
	if !ok || i >= place {
		return fmt.Errorf("tied to %q, which does not stand before it", t.Tied)
	}
	o, shape := l.Tensors[i], t.Shape
	if t.Transposed && len(shape) == 2 {
		shape = []int64{shape[1], shape[0]}
	}
	same := slices.Equal(shape, o.Shape) || !t.Transposed && t.Len() == o.Len() // same order of elements
	if o.Role != Parameter || t.Role != Parameter || o.Tied != "" || o.DType != t.DType || !same || t.Transposed && len(shape) != 2 {
		return fmt.Errorf("cannot be tied to %q, a %s of shape %v", t.Tied, o.Role, o.Shape)
	}
	t.Offset = o.Offset
	return nil
}

// Len returns the length, in elements, of the flat vector of role r: see
// [Role.Vector].
func (l *Layout) Len(r Role) int64 { return l.lens[r.Vector()] }

// Role returns the tensors of the flat vector of role r in its order, without
// tied ones. Statistics and buffers come together.
func (l *Layout) Role(r Role) []Tensor {
	var out []Tensor
	for _, t := range l.Tensors {
		if t.Role.Vector() == r.Vector() && t.Tied == "" {
			out = append(out, t)
		}
	}
	return out
}

// Find returns the tensor named name.
func (l *Layout) Find(name string) (Tensor, bool) {
	i, ok := l.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return l.Tensors[i], true
}

// At returns the tensor that holds element i of the flat vector of role r, and the element's index within the tensor.
// An error about a value should name both.
func (l *Layout) At(r Role, i int64) (Tensor, int64) {
	ts := l.Role(r)
	k := sort.Search(len(ts), func(k int) bool { return ts[k].Offset+ts[k].Len() > i })
	if k == len(ts) {
		panic("weights: element outside the layout")
	}
	return ts[k], i - ts[k].Offset
}

// Equal reports whether both layouts describe the same vectors: the same tensors in the same order with the same
// roles.
func (l *Layout) Equal(o *Layout) bool {
	return slices.EqualFunc(l.Tensors, o.Tensors, func(a, b Tensor) bool {
		return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) && a.DType == b.DType && a.Role == b.Role &&
			a.Tied == b.Tied && a.Transposed == b.Transposed
	})
}
