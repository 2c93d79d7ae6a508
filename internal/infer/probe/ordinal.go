package probe

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/task"
)

// How ordinal heads are told from independent labels. CORAL (Cao et al. 2020) adds one bias for each step to one score, so that the
// logits of a row differ by the same numbers in every row, up to differing. Of other heads the scores only fall, or only rise, in
// every row, although one step is sometimes higher than the step before is on average. Scores of frequent and of rare labels are not
// so. Of two labels one may imply the other, and so fewestSteps are needed.
const (
	differing   = 1e-3 // as a share of the variation of the logits
	fewestSteps = 3
	fewestRows  = 32
	surest      = 12 // a sigmoid in float32 has lost the digits of larger logits
)

// steps lists the ways in which scores look like the steps of an ordinal scale: K−1 cumulated probabilities P(y > k) for K classes.
// Averages of them are no independent labels, and no softmax belongs to them.
func (r *Record) steps(logits bool) []Fault {
	rows, each := r.usable(), r.each()
	if r.Count < 2 || look(rows).distinct < enough || !each && !logits {
		return nil
	}
	z := rows
	if !logits {
		z = asLogits(rows)
	}
	looks := fmt.Sprintf("the %d scores look like the steps P(y > k) of an ordinal scale with %d classes, and not like "+
		"independent labels or classes: ", r.Count, r.Count+1)
	return []Fault{
		{Name: "CORAL", When: separateByBiases(z), Hint: task.OrdinalHint(),
			Cause: looks + "the logits of every row differ by the same numbers, as those of CORAL do"},
		{Name: "steps of an ordinal scale", Hint: task.OrdinalHint(), Cause: looks + "the scores of every row only fall, or only rise",
			When: each && r.Count >= fewestSteps && len(rows) >= fewestRows && r.Labels.Width != r.Count && oneWay(rows)},
	}
}

// asLogits returns the logits of probabilities, without rows whose probabilities are rounded to 0 or 1.
func asLogits(rows [][]float32) (out [][]float32) {
	for _, row := range rows {
		z, sure := make([]float32, len(row)), false
		for k, p := range row {
			z[k] = float32(math.Log(float64(p)) - math.Log1p(-float64(p)))
			sure = sure || !(math.Abs(float64(z[k])) < surest)
		}
		if !sure {
			out = append(out, z)
		}
	}
	return out
}

// separateByBiases reports whether all rows differ from the first by one number each, which is not the same for all of them.
func separateByBiases(z [][]float32) bool {
	if len(z) < enough {
		return false
	}
	low, high, worst := math.Inf(1), math.Inf(-1), 0.0
	for _, row := range z {
		shift := float64(row[0] - z[0][0])
		low, high = min(low, shift), max(high, shift)
		for k, x := range row {
			worst = max(worst, math.Abs(float64(x-z[0][k])-shift))
		}
	}
	return high > low && worst <= differing*(high-low)
}

// oneWay reports whether the scores of every row fall from the first to the last, or whether they rise in every row. The ranges of
// neighbours must overlap.
func oneWay(rows [][]float32) bool {
	for k := 1; k < len(rows[0]); k++ {
		low, high := k, k-1
		if rows[0][k] > rows[0][k-1] {
			low, high = high, low
		}
		most, mean := float32(math.Inf(-1)), 0.0
		for _, row := range rows {
			most, mean = max(most, row[low]), mean+float64(row[high])/float64(len(rows))
		}
		if float64(most) <= mean {
			return false
		}
	}
	return ascendOrFall(rows)
}
