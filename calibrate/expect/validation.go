package expect

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
)

// Validation has the references of validation data. Either All or Parts is never missing.
type Validation struct {
	Data string `json:"data"` // a name for messages
	// Cuts are three falling uncertainties, which cut examples into four groups. Group 0 is the least certain.
	Cuts []float64 `json:"cuts"`
	// All counts all predictions. It is nil for numbers.
	All *Reference `json:"all,omitempty"`
	// Parts has a reference for each label of several, or for each number. It is nil for a label with too few wrong or right predictions.
	Parts []*Reference `json:"parts,omitempty"`
}

// New returns what to keep of validation data. each calls f with every example, in the same order each time. It returns [ErrFew] if the
// data say too little. all and parts are the limits of all predictions and of the parts.
func New(data string, figure Figure, all Limits, parts []Limits, each func(f func(*Seen))) (*Validation, error) {
	v := &Validation{Data: data, Cuts: cuts(each)}
	if v.Cuts == nil {
		return nil, ErrFew
	}
	whole, each1 := newBuilder(figure, all), make([]*builder, len(parts))
	for k, l := range parts {
		each1[k] = newBuilder(figure, l)
	}
	each(func(s *Seen) {
		h := v.stratum(s)
		if s.All != nil {
			whole.add(h, s.All)
		}
		for k := range s.Parts {
			each1[k].add(h, &s.Parts[k])
		}
	})
	var err error
	if figure == Accuracy {
		if v.All, err = whole.reference(); err != nil {
			return nil, err
		}
	}
	for _, b := range each1 {
		r, err := b.reference()
		if err != nil && (figure == RMSE || !errors.Is(err, ErrFew)) {
			return nil, err
		}
		v.Parts = append(v.Parts, r)
	}
	return v, nil
}

// cuts cuts labelled examples into four groups with about the same loss, or of numbers with as many examples. It returns nil if there are
// fewer than four.
func cuts(each func(f func(*Seen))) (cuts []float64) {
	type point struct{ uncertainty, weight float64 }
	var points []point
	total := 0.0
	each(func(s *Seen) {
		weight := 1.0
		if s.All != nil {
			weight = s.All.Known * s.All.Loss
		}
		if weight > 0 && s.Labelled() {
			points = append(points, point{s.Uncertainty, weight})
			total += weight
		}
	})
	if len(points) < strata {
		return nil
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(b.uncertainty, a.uncertainty) })
	sum, k := 0.0, 0
	for h := 1; h < strata; h++ {
		for k < len(points)-1 && (k == 0 || sum+points[k].weight <= total*float64(h)/strata*(1+1e-12)) {
			sum += points[k].weight
			k++
		}
		cuts = append(cuts, (points[k-1].uncertainty+points[k].uncertainty)/2)
	}
	return cuts
}

// stratum returns the group of an example, 0 for the least certain.
func (v *Validation) stratum(s *Seen) int {
	return sort.Search(len(v.Cuts), func(k int) bool { return v.Cuts[k] <= s.Uncertainty })
}

// Figure returns the figure of all references.
func (v *Validation) Figure() Figure {
	if v.All != nil {
		return v.All.Figure
	}
	return v.Parts[0].Figure
}

// Sound returns an error if the content of a file is invalid.
func (v *Validation) Sound() error {
	falling := slices.IsSortedFunc(v.Cuts, func(a, b float64) int { return cmp.Compare(b, a) })
	if len(v.Cuts) != strata-1 || !falling || v.Cuts[0]-v.Cuts[strata-2] < 0 {
		return errors.New("want three falling cuts")
	}
	if v.All == nil && (len(v.Parts) == 0 || slices.Contains(v.Parts, nil)) || v.All != nil && v.All.Figure == RMSE {
		return errors.New("want a reference of all predictions, or of each number")
	}
	if v.All != nil {
		if err := v.All.Sound(); err != nil {
			return err
		}
	}
	for k, r := range v.Parts {
		if r == nil {
			continue
		}
		if err := r.Sound(); err != nil {
			return fmt.Errorf("part %d: %w", k, err)
		}
		if r.Figure != v.Figure() {
			return fmt.Errorf("part %d: figure %q, want %q", k, r.Figure, v.Figure())
		}
	}
	return nil
}

// Tally adds up predictions of other data. The zero value has none.
type Tally struct {
	All   Sums
	Parts []Sums
}

// Add adds an example.
func (t *Tally) Add(v *Validation, s *Seen) {
	h := v.stratum(s)
	if s.All != nil {
		t.All.add(h, s.All)
	}
	if t.Parts == nil {
		t.Parts = make([]Sums, len(v.Parts))
	}
	for k := range s.Parts {
		t.Parts[k].add(h, &s.Parts[k])
	}
}

// Estimate returns the figure to expect, and those of the parts: zeros for a part without a reference. units is the number of independent
// examples. There must be an example.
func (v *Validation) Estimate(t *Tally, units int) (all Estimate, parts []Estimate) {
	for k, r := range v.Parts {
		var e Estimate
		if r != nil {
			e = r.Estimate(&t.Parts[k], units)
		}
		parts = append(parts, e)
	}
	if v.All != nil {
		return v.All.Estimate(&t.All, units), parts
	}
	return mean(parts), parts
}

// Allocate returns how many of the next n labels each stratum should have: see [Sums.allocate].
func (v *Validation) allocate(t *Tally, n int) [strata]int {
	if v.All != nil {
		return t.All.allocate([]*Reference{v.All}, n)
	}
	return t.Parts[0].allocate(v.Parts, n)
}
