package guarantee

import (
	"reflect"
	"testing"
)

// A guarantee is void for predictions that differ from those that chose it in anything that [Made] has. Each field is tried alone: a
// field without words in changes fails here.
func TestVoidOf(t *testing.T) {
	q := 0.5
	cells := []Cell{{Examples: []int{10}, Thresholds: []*float64{&q}, Cuts: []float32{0.5}}}
	of := func(sets, answers Made) *Guarantee {
		return &Guarantee{
			Coverage: &Coverage{Level: 0.9, Method: "lac", Cells: cells, Data: Data{Made: sets}},
			Answers:  &Answers{Risk: 0.1, Cut: 0.5, Data: Data{Made: answers}},
		}
	}
	for i := range reflect.TypeFor[Made]().NumField() {
		var one, other Made
		reflect.ValueOf(&one).Elem().Field(i).SetString("one")
		reflect.ValueOf(&other).Elem().Field(i).SetString("other")
		for _, c := range []struct {
			sets, answers, made Made
			void                bool
		}{
			{Made{}, Made{}, Made{}, false},
			{one, one, one, false},
			{Made{}, Made{}, one, true},
			{one, one, Made{}, true},
			{one, one, other, true},
			{one, other, one, true}, // the answers alone
			{other, one, one, true},
		} {
			if why := of(c.sets, c.answers).Void(c.made); (why != nil) != c.void {
				t.Errorf("sets by %+v, answers by %+v, made %+v: %q, want void %v", c.sets, c.answers, c.made, why, c.void)
			}
		}
	}
	if why := (*Guarantee)(nil).Void(Made{}); why != nil {
		t.Errorf("no guarantee: %q", why)
	}
}
