package show

import (
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/compare"
)

// adaptedLines says what adapting to data changes: the accuracy of each adapted method against that of its plain one. Tasks without
// errors have none.
func (r sentences) adaptedLines() (lines []string) {
	for _, m := range r.Methods {
		plain := r.Method(baseline.PlainOf(m.Key))
		if plain == nil || m.Loss(compare.ErrorLoss) == nil || plain.Loss(compare.ErrorLoss) == nil {
			continue
		}
		where := "the test data"
		if r.Shift != nil && r.Inputs.Adapt != nil && r.Inputs.Adapt.Target == nil {
			where = "clean data"
		}
		clean := r.DifferenceTo(m, plain, compare.ErrorLoss).Interval
		line := fmt.Sprintf("Adapting changes the accuracy of %s by %s on %s", short(plain), pointsOf(clean), where)
		if r.Shift != nil && hasLoss(m, compare.ErrorLoss) && hasLoss(plain, compare.ErrorLoss) {
			line += fmt.Sprintf(", and by %s on damaged data", pointsOf(r.ShiftDifference(m, plain, compare.ErrorLoss, 0).Interval))
		}
		if line += "."; clean.Low > 0 {
			line += fmt.Sprintf(" It harms on %s.", where)
		}
		lines = append(lines, line)
	}
	return lines
}

// hasLoss reports whether a method has a loss on damaged data.
func hasLoss(m *compare.Method, key string) bool {
	return m.Shifted != nil && m.ShiftLoss(key, 0) != nil && !slices.ContainsFunc(m.ShiftLoss(key, 0), math.IsNaN)
}

// pointsOf shows a difference of error rates as one of accuracies, in percentage points.
func pointsOf(i chance.Interval) string {
	return report.Signed(-100*i.Mean, 1) + " points " + report.Interval(-100*i.High, -100*i.Low, 1)
}
