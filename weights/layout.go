package weights

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// Role says what a tensor is to the posterior.
type Role uint8

const (
	// Constant tensors are equal in every checkpoint and are copied verbatim.
	Constant Role = iota
	// Parameter tensors make the vector that the posterior is over.
	Parameter
	// Statistic tensors are batch norm's running mean and variance. They are
	// never part of the posterior: they are recomputed for every member.
	Statistic
)

var roles = [...]string{Constant: "constant", Parameter: "parameter", Statistic: "statistic"}

func (r Role) String() string { return roles[r] }

// MarshalText writes the role's word.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the role's word.
func (r *Role) UnmarshalText(b []byte) error {
	i := slices.Index(roles[:], string(b))
	if i < 0 {
		return fmt.Errorf("role %q: want parameter, statistic or constant", b)
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
	// Offset is the index of the first element in the flat vector of the
	// tensor's role. It is 0 for constants, which are in no vector.
	Offset int64 `json:"offset"`
	// Tied names another parameter whose elements this one shares: it has no
	// place of its own in the vector. Where Transposed is set, this tensor is
	// the transpose of the other, both matrices.
	Tied       string `json:"tied,omitempty"`
	Transposed bool   `json:"transposed,omitempty"`
}

// Len returns the number of elements.
func (t Tensor) Len() int64 {
	n, _ := Elements(t.Shape)
	return n
}

// Elements returns the number of elements of a tensor of the given shape. It
// fails on negative dimensions and on products beyond int64.
func Elements(shape []int64) (int64, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v: negative dimension", shape)
		}
		if d != 0 && n > math.MaxInt64/8/d {
			return 0, fmt.Errorf("shape %v: too many elements", shape)
		}
		n *= d
	}
	return n, nil
}

// Layout is the ordered list of a network's tensors. Build one with
// [NewLayout]; the zero value is an empty network.
type Layout struct {
	Tensors []Tensor `json:"tensors"`

	lens [len(roles)]int64
}

// NewLayout assigns offsets to the tensors in their order, one running count
// for each role, and checks names and shapes. A tied tensor gets the offset of
// the one it is tied to, which must stand before it.
func NewLayout(tensors []Tensor) (*Layout, error) {
	l := &Layout{Tensors: slices.Clone(tensors)}
	seen := make(map[string]bool, len(tensors))
	for i := range l.Tensors {
		t := &l.Tensors[i]
		if seen[t.Name] {
			return nil, fmt.Errorf("tensor %q: listed twice", t.Name)
		}
		seen[t.Name] = true
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
			if err := l.tie(t, l.Tensors[:i]); err != nil {
				return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
			}
			continue
		}
		t.Offset = l.lens[t.Role]
		l.lens[t.Role] += n
		if l.lens[t.Role] < 0 {
			return nil, errors.New("layout has too many elements")
		}
	}
	return l, nil
}

// tie gives t the place of the tensor it names, one of those before it.
func (l *Layout) tie(t *Tensor, before []Tensor) error {
	i := slices.IndexFunc(before, func(o Tensor) bool { return o.Name == t.Tied })
	if i < 0 {
		return fmt.Errorf("tied to %q, which does not stand before it", t.Tied)
	}
	o, shape := before[i], t.Shape
	if t.Transposed && len(shape) == 2 {
		shape = []int64{shape[1], shape[0]}
	}
	if o.Role != Parameter || t.Role != Parameter || o.Tied != "" || o.DType != t.DType || !slices.Equal(shape, o.Shape) || t.Transposed && len(shape) != 2 {
		return fmt.Errorf("cannot be tied to %q, a %s of shape %v", t.Tied, o.Role, o.Shape)
	}
	t.Offset = o.Offset
	return nil
}

// Len returns the length of the flat vector of role r, in elements.
func (l *Layout) Len(r Role) int64 { return l.lens[r] }

// Role returns the tensors of role r in vector order, without tied ones.
func (l *Layout) Role(r Role) []Tensor {
	var out []Tensor
	for _, t := range l.Tensors {
		if t.Role == r && t.Tied == "" {
			out = append(out, t)
		}
	}
	return out
}

// Find returns the tensor named name.
func (l *Layout) Find(name string) (Tensor, bool) {
	i := slices.IndexFunc(l.Tensors, func(t Tensor) bool { return t.Name == name })
	if i < 0 {
		return Tensor{}, false
	}
	return l.Tensors[i], true
}

// At returns the tensor of role r that holds element i of its flat vector,
// and the element's index within the tensor: what an error about a value
// should name.
func (l *Layout) At(r Role, i int64) (Tensor, int64) {
	ts := l.Role(r)
	k := sort.Search(len(ts), func(k int) bool { return ts[k].Offset+ts[k].Len() > i })
	if k == len(ts) {
		panic("weights: element outside the layout")
	}
	return ts[k], i - ts[k].Offset
}

// Equal reports whether both layouts describe the same vectors: same tensors
// in the same order with the same roles.
func (l *Layout) Equal(o *Layout) bool {
	return slices.EqualFunc(l.Tensors, o.Tensors, func(a, b Tensor) bool {
		return a.Name == b.Name && slices.Equal(a.Shape, b.Shape) && a.DType == b.DType && a.Role == b.Role &&
			a.Tied == b.Tied && a.Transposed == b.Transposed
	})
}
