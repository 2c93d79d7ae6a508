package detect

import (
	"cmp"
	"slices"
)

// SCOD returns the area under the risk–coverage curve of selective classification with unknown inputs (Xia and Bouganis 2022). in and
// out are the scores of examples in and out of the domain, and wrong says which of in are predicted wrong. Examples are accepted in
// the order of their scores, the least first. The risk of the accepted ones is the mean cost: 1/2 for a wrong one, 1/2 for one of
// out, and 0 otherwise. Lower is better. The area is the trapezoidal rule over coverages from 1/n to 1, divided by 1 − 1/n, as in
// torch-uncertainty 0.13. Equal scores share their mean cost, so the order of examples does not matter.
func SCOD(in []float64, wrong []bool, out []float64) float64 {
	if len(in) != len(wrong) {
		panic(badScores)
	}
	const cost = 0.5
	type accepted struct{ score, cost float64 }
	var all []accepted
	for i, s := range in {
		a := accepted{score: s}
		if wrong[i] {
			a.cost = cost
		}
		all = append(all, a)
	}
	for _, s := range out {
		all = append(all, accepted{s, cost})
	}
	if len(all) < 2 {
		panic(badScores)
	}
	slices.SortStableFunc(all, func(a, b accepted) int { return cmp.Compare(a.score, b.score) })
	for i := 0; i < len(all); {
		j, sum := i, 0.0
		for ; j < len(all) && all[j].score == all[i].score; j++ {
			sum += all[j].cost
		}
		for mean := sum / float64(j-i); i < j; i++ {
			all[i].cost = mean
		}
	}
	area, sum, before := 0.0, 0.0, 0.0
	for i, a := range all {
		sum += a.cost
		risk := sum / float64(i+1)
		if i > 0 {
			area += (before + risk) / 2
		}
		before = risk
	}
	return area / float64(len(all)-1)
}
