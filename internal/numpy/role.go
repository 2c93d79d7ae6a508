package numpy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/target"
)

// Role is the purpose that an array serves, such as images or labels.
type Role struct {
	What     string
	Names    []string // names that an array in an .npz may have, alone or as a part: "test_images"
	Optional bool     // the .npz may lack it
	Want     string   // the types that OK accepts, for errors
	OK       func(Type) bool
}

// The roles of arrays.
var (
	// Values may have any numeric type and any name.
	Values = Role{
		What: "values",
		Want: "bool, an integer type, float16, float32 or float64",
		OK:   func(t Type) bool { return t.Kind != 0 },
	}
	Images = Role{
		What:  "examples",
		Names: []string{"images", "image", "x", "data", "inputs", "input"},
		Want:  "uint8, float32 or float64",
		OK:    func(t Type) bool { return t.Kind == 'u' && t.Size == 1 || t.Kind == 'f' && t.Size > 2 },
	}
	Labels = Role{
		What:     "labels",
		Names:    []string{"labels", "label", "y", "targets", "target"},
		Optional: true,
		Want:     "an integer type (class numbers), or floats that are whole numbers",
		OK:       func(t Type) bool { return t.Kind == 'u' || t.Kind == 'i' || t.Kind == 'f' },
	}
	// rows are labels that are not class numbers.
	rows = Role{
		What: "labels",
		Want: "bool, an integer type, float16, float32 or float64",
		OK:   func(t Type) bool { return t.Kind != 0 },
	}
)

// accept returns an error if the array does not fit the role. It needs only the header.
func (r Role) accept(h header) error {
	if !r.OK(h.dtype) {
		hint := ""
		if h.dtype.Name == "object" {
			hint = ": its elements are pickled Python objects; save it again as np.asarray(a, dtype=...)"
		}
		return fmt.Errorf("%s of type %s, want %s%s", r.What, h.dtype.Name, r.Want, hint)
	}
	return nil
}

// Named reports whether an array's name fits the role.
func (r Role) Named(key string) bool {
	_, ok := nameRest(key, r.Names)
	return ok
}

// nameRest removes from key the part that is one of names, and reports whether there was one. It turns "x_test" into
// "test".
func nameRest(key string, names []string) (rest string, ok bool) {
	parts := strings.Split(strings.ToLower(key), "_")
	i := slices.IndexFunc(parts, func(p string) bool { return slices.Contains(names, p) })
	if i < 0 {
		return key, false
	}
	return strings.Join(slices.Delete(parts, i, i+1), "_"), true
}

// Pick returns the name of the array for a role. The choice must be unambiguous. Labels must belong to the same split,
// such as test, as the array named beside. Pick returns "" for an unnamed array, and for labels that are missing.
func (n *File) Pick(r Role, beside string) (string, error) {
	if n.Keys == nil {
		return "", nil
	}
	split, _ := nameRest(beside, Images.Names)
	var exact, partial []string // partial holds names with a split, such as "x_test"
	for _, k := range n.Keys {
		switch rest, ok := nameRest(k, r.Names); {
		case !ok || k == beside:
		case rest == "":
			exact = append(exact, k)
		case beside == "" || rest == split: // y_train never labels x_test
			partial = append(partial, k)
		}
	}
	found := exact
	if len(found) == 0 || beside != "" && len(partial) > 0 {
		found = partial
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("%s: any of %s could be the %s: save one of them", n.Path, Quote(found), r.What)
	case r.Optional:
		return "", nil
	}
	// The only array besides the labels holds the examples, whatever its name.
	if others := slices.DeleteFunc(slices.Clone(n.Keys), Labels.Named); len(others) == 1 {
		return others[0], nil
	}
	return "", fmt.Errorf("%s: cannot tell which of %s holds the %s: call it %s", n.Path, Quote(n.Keys), r.What, r.Names[0])
}

// AnyCount stands for any number of examples.
const AnyCount = -1

// ReadLabels reads the class numbers of count examples from the array named key. The argument of is the path of the
// examples, for errors. Each class number is 0 or more.
func (n *File) ReadLabels(key string, count int, of string) ([]int, error) {
	t, err := n.ReadTargets(key, target.Classes, nil, count, of)
	return t.Classes, err
}

// ReadTargets reads the targets of count examples from the array named key. at says how they are stored if examples have
// several positions, and is nil otherwise. The argument of is the path of the examples, for errors.
func (n *File) ReadTargets(key string, kind target.Kind, at *target.Positions, count int, of string) (t target.Target, err error) {
	role := Labels
	if kind != target.Classes || at != nil {
		role = rows
	}
	y, err := n.Read(key, role)
	if err != nil {
		return t, err
	}
	if at != nil {
		t, err = y.positions(kind, *at, count, of)
	} else if kind == target.Classes {
		t.Classes, err = y.labels(count, of)
	} else {
		t, err = y.rows(kind, count, of)
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", n.Where(key), err)
	}
	return t, nil
}

// OpenLabels reads the class numbers of count examples from a separate file, and returns its SHA-256 too. The
// examples are the array named beside, or the unnamed array if beside is "". The argument of is the path of their
// file.
func OpenLabels(path, beside string, count int, of string) (labels []int, sha256 string, err error) {
	t, sha256, err := OpenTargets(path, beside, target.Classes, nil, count, of)
	return t.Classes, sha256, err
}

// OpenTargets is [OpenLabels] for targets of any kind.
func OpenTargets(path, beside string, kind target.Kind, at *target.Positions, count int, of string) (t target.Target,
	sha256 string, err error) {
	n, err := Open(path)
	if err != nil {
		return t, "", err
	}
	defer n.Close()
	key, err := n.Pick(Labels, beside)
	if err != nil {
		return t, "", err
	}
	if key == "" && n.Keys != nil {
		return t, "", fmt.Errorf("%s: no labels among %s", path, Quote(n.Keys))
	}
	t, err = n.ReadTargets(key, kind, at, count, of)
	return t, n.SHA256, err
}

// rows checks the targets of count examples and converts them to float64.
func (a Array) rows(kind target.Kind, count int, of string) (t target.Target, err error) {
	s := a.Shape
	switch {
	case len(s) != 1 && len(s) != 2:
		return t, fmt.Errorf("labels of shape %d, want a number or a row for each example", s)
	case s[0] != count && count != AnyCount:
		return t, fmt.Errorf("%d labels for %d examples in %s", s[0], count, of)
	}
	t = target.Target{Values: a.Float64s(), Width: len(a.Data) / a.Type.Size / s[0]}
	if kind == target.Labels {
		var signs target.Signs
		for i, v := range t.Values {
			if signs.Add(v); math.IsNaN(v) {
				t.Values[i] = target.Unknown
			}
		}
		if err := signs.Err(); err != nil {
			return target.Target{}, err
		}
	}
	for i := range s[0] {
		if err := kind.Check(t.At(i).Values); err != nil {
			return target.Target{}, fmt.Errorf("row %d: %w", i, err)
		}
	}
	return t, nil
}

// labels checks the class numbers of count examples and converts them to int.
func (a Array) labels(count int, of string) ([]int, error) {
	if s := a.Shape; len(s) != 1 && !(len(s) == 2 && s[1] == 1) {
		return nil, fmt.Errorf("labels of shape %d, want [%d] or [%d 1] (class numbers, not one-hot)", s, count, count)
	}
	if a.Shape[0] != count {
		return nil, fmt.Errorf("%d labels for %d examples in %s", a.Shape[0], count, of)
	}
	labels := make([]int, count)
	if a.Type.Kind == 'f' {
		return labels, a.wholeLabels(labels)
	}
	var signs target.Signs
	for i := range labels {
		v, ok := a.Int64(i)
		signs.Add(float64(v))
		switch {
		case !ok:
			return nil, fmt.Errorf("label %d is %d, want a class number", i, uint64(v))
		case target.NoClass(float64(v)):
			v = target.Unknown
		case v < 0:
			return nil, fmt.Errorf("label %d is %d, want 0 or more, or -1 where there is none", i, v)
		}
		labels[i] = int(v)
	}
	return labels, signs.Err()
}

// wholeLabels converts class numbers that are floats. pandas makes floats of whole numbers if one is missing, which is NaN then.
func (a Array) wholeLabels(labels []int) error {
	var signs target.Signs
	for i := range labels {
		v := a.Float64(i)
		signs.Add(v)
		switch {
		case math.IsNaN(v), target.NoClass(v):
			labels[i] = target.Unknown
		case v != math.Trunc(v) || math.Abs(v) > 1<<53:
			return fmt.Errorf("label %d is %v, want a class number: whole, or NaN where there is none", i, v)
		case v < 0:
			return fmt.Errorf("label %d is %v, want 0 or more, or -1 where there is none", i, v)
		default:
			labels[i] = int(v)
		}
	}
	return signs.Err()
}

// positions returns the targets of count examples with several positions. They stay in the array's own type until they
// are loaded.
func (a Array) positions(kind target.Kind, at target.Positions, count int, of string) (t target.Target, err error) {
	s := a.Shape
	switch {
	case len(s) < 2:
		return t, fmt.Errorf("labels of shape %d, want one for each position: [N H W] for pictures, [N T] for tokens", s)
	case s[0] != count:
		return t, fmt.Errorf("%d labels for %d examples in %s", s[0], count, of)
	case kind == target.Classes && a.Type.Kind == 'f':
		return t, fmt.Errorf("labels of type %s, want an integer type (class numbers)", a.Type.Name)
	}
	size, width := len(a.Data)/a.Type.Size/count, max(1, at.Width)
	if size%width != 0 {
		return t, fmt.Errorf("labels of shape %d, want %d numbers for each position", s, width)
	}
	return target.Lazy(count, func(i int) (target.Target, error) {
		one := target.Target{Positions: size / width}
		if kind == target.Classes {
			one.Classes = make([]int, size)
			for k := range one.Classes {
				var err error
				if one.Classes[k], err = at.Class(a.Int64(i*size + k)); err != nil {
					return one, fmt.Errorf("position %d: %w", k, err)
				}
			}
			return one, nil
		}
		one.Values, one.Width = make([]float64, size), width
		for k := range one.Values {
			from := k
			if at.Axis == 1 {
				from = k%width*one.Positions + k/width
			}
			one.Values[k] = a.Float64(i*size + from)
		}
		return one, nil
	}), nil
}
