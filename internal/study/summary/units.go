package summary

import "github.com/swagwrap/swagwrap/internal/predictions"

// units counts units of chance.
type units struct {
	of    func(i int, name string) string // of --groups, or nil
	each  map[string]float64              // examples of each
	alone float64                         // examples without a unit
}

func (u *units) add(r *predictions.Row) {
	name := ""
	if u.of != nil {
		name = u.of(r.Index, r.Path)
	}
	if name == "" {
		u.alone++
		return
	}
	if u.each == nil {
		u.each = map[string]float64{}
	}
	u.each[name]++
}

// number returns the number of independent examples. Units of unequal size count as (Σn)²/Σn² units of equal size (Kish 1965).
func (u *units) number() int {
	sum, squares := u.alone, u.alone
	for _, n := range u.each {
		sum, squares = sum+n, squares+n*n
	}
	if sum == 0 {
		return 0
	}
	return int(sum * sum / squares)
}
