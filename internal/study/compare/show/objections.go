package show

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study/compare"
)

// objections says why nothing is recommended, and what to check.
func (r sentences) objections() (lines []string) {
	for _, o := range r.verdict.Against {
		lines = append(append(lines, "Nothing is recommended: "+r.objection(o)), o.Warnings...)
	}
	return lines
}

func (r sentences) objection(o compare.Objection) string {
	switch m := o.Method; o.Kind {
	case compare.SharedData:
		return "data has two roles, so the numbers look better than they are."
	case compare.WrongInputs:
		return "inputs are not like those of training."
	case compare.WrongClasses:
		return fmt.Sprintf("the scores of %s do not fit the labels that its temperature is fitted on (T = %s). Check the order of the "+
			"classes (%s), the labels, and the preprocessing.",
			short(m), m.Scaling.Numbers(), setting.Fit.With(setting.ClassNames.String()))
	case compare.NothingLearnt:
		return fmt.Sprintf("no method is clearly better than the %s of the %s data. They need no network, and their %s is %s; %s has "+
			"%s. Check the labels, and that inputs are prepared as in training.",
			r.Constant.Name, r.ConstantOf, r.Loss().Name, report.Fixed(r.Value(r.Constant), 4), short(m), report.Fixed(r.Value(m), 4))
	case compare.TooSure:
		return fmt.Sprintf("the networks are worse than the %s of the %s data (%s %s) and only look useful with %s = %s. Check the "+
			"labels, and that inputs are prepared as in training.",
			r.Constant.Name, r.ConstantOf, r.Loss().Name, report.Fixed(r.Value(r.Constant), 4), m.Scaling.By.Symbol, m.Scaling.Numbers())
	case compare.NotDetermined:
		names, why := r.undetermined()
		return fmt.Sprintf("the fit for %s is not determined: %s", names, why)
	}
	panic("show: no words for " + o.Kind)
}
