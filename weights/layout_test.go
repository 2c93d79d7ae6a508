package weights

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func testLayout(t *testing.T) *Layout {
	t.Helper()
	l, err := NewLayout([]Tensor{
		{Name: "conv", Shape: []int64{2, 3}, DType: F32, Role: Parameter},
		{Name: "mean", Shape: []int64{2}, DType: F32, Role: Statistic},
		{Name: "steps", Shape: nil, DType: I64, Role: Constant, Offset: 99},
		{Name: "none", Shape: []int64{4, 0}, DType: F16, Role: Parameter},
		{Name: "scale", Shape: nil, DType: F64, Role: Parameter},
		{Name: "var", Shape: []int64{2}, DType: F32, Role: Statistic},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLayoutOffsets(t *testing.T) {
	l := testLayout(t)
	for name, want := range map[string]int64{"conv": 0, "none": 6, "scale": 6, "mean": 0, "var": 2, "steps": 0} {
		if got, ok := l.Find(name); !ok || got.Offset != want {
			t.Errorf("%s: offset %d, want %d", name, got.Offset, want)
		}
	}
	if p, s, c := l.Len(Parameter), l.Len(Statistic), l.Len(Constant); p != 7 || s != 4 || c != 0 {
		t.Errorf("lengths %d, %d, %d, want 7, 4, 0", p, s, c)
	}
	if _, ok := l.Find("absent"); ok {
		t.Error("found a tensor that is not there")
	}
	var names []string
	for _, p := range l.Role(Parameter) {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "conv none scale" {
		t.Errorf("parameters %q", got)
	}
}

func TestLayoutAt(t *testing.T) {
	l := testLayout(t)
	for _, c := range []struct {
		role  Role
		i     int64
		name  string
		index int64
	}{
		{Parameter, 0, "conv", 0},
		{Parameter, 5, "conv", 5},
		{Parameter, 6, "scale", 0}, // not "none", which holds no element
		{Statistic, 1, "mean", 1},
		{Statistic, 2, "var", 0},
	} {
		if got, index := l.At(c.role, c.i); got.Name != c.name || index != c.index {
			t.Errorf("At(%v, %d) = %s[%d], want %s[%d]", c.role, c.i, got.Name, index, c.name, c.index)
		}
	}
	mustPanic(t, "At(7)", func() { l.At(Parameter, 7) })
}

func TestLayoutErrors(t *testing.T) {
	huge := []int64{math.MaxInt64 / 8}
	for want, tensors := range map[string][]Tensor{
		`"a": listed twice`:                          {{Name: "a", DType: F32}, {Name: "a", DType: F32, Role: Parameter}},
		`"a": parameter I64, want a float type`:      {{Name: "a", DType: I64, Role: Parameter}},
		`"a": statistic invalid, want a float type`:  {{Name: "a", Role: Statistic}},
		`"a": shape [2 -1]: negative dimension`:      {{Name: "a", Shape: []int64{2, -1}}},
		`"a": shape [4294967296 4294967296]: too ma`: {{Name: "a", Shape: []int64{1 << 32, 1 << 32}}},
		"too many elements": {
			{Name: "a", Shape: huge, DType: F32, Role: Parameter}, {Name: "b", Shape: huge, DType: F32, Role: Parameter},
			{Name: "c", Shape: huge, DType: F32, Role: Parameter}, {Name: "d", Shape: huge, DType: F32, Role: Parameter},
			{Name: "e", Shape: huge, DType: F32, Role: Parameter}, {Name: "f", Shape: huge, DType: F32, Role: Parameter},
			{Name: "g", Shape: huge, DType: F32, Role: Parameter}, {Name: "h", Shape: huge, DType: F32, Role: Parameter},
			{Name: "i", Shape: huge, DType: F32, Role: Parameter},
		},
	} {
		if _, err := NewLayout(tensors); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// Tied tensors share the place of the one they name, and add nothing.
func TestTies(t *testing.T) {
	l, err := NewLayout([]Tensor{
		{Name: "a", Shape: []int64{2}, DType: F32, Role: Parameter},
		{Name: "w", Shape: []int64{2, 3}, DType: F32, Role: Parameter},
		{Name: "copy", Shape: []int64{2, 3}, DType: F32, Role: Parameter, Tied: "w"},
		{Name: "turned", Shape: []int64{3, 2}, DType: F32, Role: Parameter, Tied: "w", Transposed: true},
		{Name: "z", Shape: []int64{4}, DType: F32, Role: Parameter},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"a": 0, "w": 2, "copy": 2, "turned": 2, "z": 8} {
		if got, _ := l.Find(name); got.Offset != want {
			t.Errorf("%s: offset %d, want %d", name, got.Offset, want)
		}
	}
	if n, own := l.Len(Parameter), len(l.Role(Parameter)); n != 12 || own != 3 {
		t.Errorf("%d elements in %d tensors, want 12 in 3", n, own)
	}
	if got, i := l.At(Parameter, 7); got.Name != "w" || i != 5 {
		t.Errorf("element 7 is %s[%d], want w[5]", got.Name, i)
	}
	js, err := json.Marshal(l.Tensors[3])
	if want := `{"name":"turned","shape":[3,2],"dtype":"F32","role":"parameter","offset":2,"tied":"w","transposed":true}`; err != nil || string(js) != want {
		t.Errorf("JSON %s, %v, want %s", js, err, want)
	}
	for name, change := range map[string]func(*Tensor){"tie": func(t *Tensor) { t.Tied = "copy" }, "transpose": func(t *Tensor) { t.Transposed = false }} {
		o := &Layout{Tensors: slices.Clone(l.Tensors)}
		change(&o.Tensors[3])
		if l.Equal(o) {
			t.Errorf("another %s goes unnoticed", name)
		}
	}
}

func TestTieErrors(t *testing.T) {
	first := Tensor{Name: "w", Shape: []int64{2, 3}, DType: F32, Role: Parameter}
	tied := func(to string, transposed bool, shape ...int64) Tensor {
		return Tensor{Name: "t", Shape: shape, DType: F32, Role: Parameter, Tied: to, Transposed: transposed}
	}
	statistic := tied("w", false, 2, 3)
	statistic.Role = Statistic
	for name, c := range map[string]struct {
		tensors []Tensor
		want    string
	}{
		"absent":            {[]Tensor{first, tied("v", false, 2, 3)}, `"t": tied to "v", which does not stand before it`},
		"itself":            {[]Tensor{tied("t", false, 2, 3)}, `"t": tied to "t", which does not stand before it`},
		"later":             {[]Tensor{tied("w", false, 2, 3), first}, `"t": tied to "w", which does not stand before it`},
		"shape":             {[]Tensor{first, tied("w", false, 3, 3)}, `"t": cannot be tied to "w", a parameter of shape [2 3]`},
		"transposed shape":  {[]Tensor{first, tied("w", true, 2, 3)}, "cannot be tied"},
		"transposed vector": {[]Tensor{{Name: "w", Shape: []int64{2}, DType: F32, Role: Parameter}, tied("w", true, 2)}, "cannot be tied"},
		"statistic":         {[]Tensor{first, statistic}, "cannot be tied"},
		"to a constant":     {[]Tensor{{Name: "w", Shape: []int64{2, 3}, DType: F32}, tied("w", false, 2, 3)}, `a constant of shape`},
		"to a tied one":     {[]Tensor{first, {Name: "u", Shape: []int64{2, 3}, DType: F32, Role: Parameter, Tied: "w"}, tied("u", false, 2, 3)}, "cannot be tied"},
	} {
		if _, err := NewLayout(c.tensors); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

func TestElements(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		want  int64 // -1: an error
	}{
		{nil, 1},
		{[]int64{3, 4}, 12},
		{[]int64{0, math.MaxInt64, math.MaxInt64}, 0},
		{[]int64{math.MaxInt64 / 8}, math.MaxInt64 / 8}, // as bytes of the widest type still an int64
		{[]int64{math.MaxInt64/8 + 1}, -1},
		{[]int64{1 << 30, 1 << 30, 2}, -1},
		{[]int64{-1, 0}, -1},
		{[]int64{0, -1}, -1},
	} {
		if got, err := Elements(c.shape); err == nil && got != c.want || err != nil && c.want >= 0 {
			t.Errorf("Elements(%v) = %d, %v, want %d", c.shape, got, err, c.want)
		}
	}
	for _, shape := range [][]int64{{13}, {2, 7}, {12, math.MaxInt64}, {math.MaxInt64, math.MaxInt64, math.MaxInt64}, {-1}} {
		if _, err := Within(shape, 12); err == nil {
			t.Errorf("Within(%v, 12): no error", shape)
		}
	}
	for _, shape := range [][]int64{{}, {12}, {3, 4}, {0, math.MaxInt64}} {
		if _, err := Within(shape, 12); err != nil {
			t.Errorf("Within(%v, 12): %v", shape, err)
		}
	}
}

func TestLayoutEqual(t *testing.T) {
	l := testLayout(t)
	if !l.Equal(testLayout(t)) {
		t.Error("a layout does not equal itself")
	}
	for name, change := range map[string]func(*Layout){
		"name":  func(o *Layout) { o.Tensors[0].Name = "x" },
		"shape": func(o *Layout) { o.Tensors[0].Shape = []int64{3, 2} },
		"dtype": func(o *Layout) { o.Tensors[0].DType = F16 },
		"role":  func(o *Layout) { o.Tensors[0].Role = Statistic },
		"order": func(o *Layout) { o.Tensors[0], o.Tensors[1] = o.Tensors[1], o.Tensors[0] },
		"count": func(o *Layout) { o.Tensors = o.Tensors[:5] },
	} {
		o := testLayout(t)
		change(o)
		if l.Equal(o) || o.Equal(l) {
			t.Errorf("another %s goes unnoticed", name)
		}
	}
}

// The layout is stored as JSON in posterior files: docs/formats.md guarantees
// these words.
func TestLayoutJSON(t *testing.T) {
	l, err := NewLayout([]Tensor{{Name: "w", Shape: []int64{2}, DType: BF16, Role: Parameter}, {Name: "scalar", DType: F32, Role: Parameter}})
	if err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"tensors":[{"name":"w","shape":[2],"dtype":"BF16","role":"parameter","offset":0},` +
		`{"name":"scalar","shape":[],"dtype":"F32","role":"parameter","offset":2}]}`
	if string(js) != want {
		t.Errorf("JSON %s, want %s", js, want)
	}
	var back Layout
	if err := json.Unmarshal(js, &back); err != nil || !reflect.DeepEqual(back.Tensors, l.Tensors) {
		t.Errorf("reads back as %+v, %v", back.Tensors, err)
	}
	var r Role
	if err := r.UnmarshalText([]byte("weight")); err == nil {
		t.Error("an unknown role is accepted")
	}
}
