package chance

import "math"

// Antithetic measures how far the average over antithetic pairs is from that over infinitely many, from the pairs as they are
// drawn. It needs no labels.
//
// Let f₊ and f₋ be the outcomes of a pair, such as probabilities. With the even part e = (f₊+f₋)/2 and the odd part
// o = (f₊−f₋)/2, whose mean is 0, the variance of one member is Var(e) + E[o²]. In the average of a pair odd parts cancel. So
// the squared error of n independent members is (Var(e) + E[o²])/n, and that of m pairs is Var(e)/m. Both are equal at
//
//	m = n·Var(e)/(Var(e) + E[o²])
type Antithetic struct {
	width     int // numbers of an outcome
	relative  bool
	pairs     int
	first     []float64 // the outcomes of the first member of a pair, or nil
	mean      []float64 // of the even parts
	even, odd []float64 // sums of squares for each number of an outcome, over examples: Σ(e−ē)² and Σo²
}

// NewAntithetic returns an Antithetic of no pairs. An outcome has width numbers. If they have different units, each number
// counts relative to its own variance.
func NewAntithetic(width int, differentUnits bool) *Antithetic {
	return &Antithetic{width: width, relative: differentUnits, even: make([]float64, width), odd: make([]float64, width)}
}

// Add adds the outcomes of the next member, for the same examples.
func (a *Antithetic) Add(outcomes []float64) {
	if a.first == nil {
		a.first = append([]float64(nil), outcomes...)
		return
	}
	if a.mean == nil {
		a.mean = make([]float64, len(outcomes))
	}
	a.pairs++
	for i, v := range outcomes {
		e, o := (a.first[i]+v)/2, (a.first[i]-v)/2
		before := e - a.mean[i]
		a.mean[i] += before / float64(a.pairs)
		a.even[i%a.width] += before * (e - a.mean[i])
		a.odd[i%a.width] += o * o
	}
	a.first = nil
}

// leastPairs is the number of pairs below which the variance of their averages is not known well enough, and leastDraws that
// of independent draws.
const leastPairs, leastDraws = 3, 10

// LeastMembers is the number of members below which nothing is concluded, since the effect of their draws cannot be estimated.
func LeastMembers(antithetic bool) int {
	if antithetic {
		return 2 * leastPairs
	}
	return leastDraws
}

// Pairs returns the number of pairs whose error is that of n independent members, or n/2 if fewer have a larger error. It is
// at least as many as tell the error. ok is false if there are not enough pairs so far to say so.
func (a *Antithetic) Pairs(n int) (pairs int, ok bool) {
	if a.pairs < 2 {
		return n / 2, n/2 <= a.pairs
	}
	share, numbers := 0.0, 0.0
	for c := range a.even {
		even, odd := a.even[c]/float64(a.pairs-1), a.odd[c]/float64(a.pairs)
		if all := even + odd; all > 0 && a.relative {
			share, numbers = share+even/all, numbers+1
		} else if !a.relative {
			share, numbers = share+even, numbers+all
		}
	}
	if numbers > 0 {
		share /= numbers
	}
	pairs = min(max(leastPairs, int(math.Ceil(float64(n)*share-1e-9))), n/2)
	return pairs, pairs <= a.pairs
}
