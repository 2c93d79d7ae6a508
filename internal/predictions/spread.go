package predictions

import (
	"fmt"
	"math"
)

// A spread is a kind of numbers from which a standard deviation can be computed. key is the first of its names.
type spread struct {
	names []string
	of    string // key of the standard deviation
	std   func(float64) float64
}

// spreads lists them. Names that may have several meanings, such as scale, are not among them.
var spreads = spreadsOf()

func spreadsOf() (out []spread) {
	forms := []struct {
		names []string
		std   func(float64) float64
	}{
		{[]string{"std", "stds", "sigma", "stddev", "std_dev", "stdev", "standard_deviation"}, func(v float64) float64 { return v }},
		{[]string{"var", "variance", "variances", "sigma2", "sigma_squared"}, math.Sqrt},
		{[]string{"log_var", "logvar", "log_variance", "log_sigma2"}, func(v float64) float64 { return math.Exp(v / 2) }},
		{[]string{"log_std", "logstd", "log_sigma"}, math.Exp},
	}
	for _, of := range []string{"", "aleatoric_", "epistemic_"} {
		for _, f := range forms {
			s := spread{of: of + "std", std: f.std}
			for _, name := range f.names {
				s.names = append(s.names, of+name)
			}
			for _, name := range f.names {
				if of == "" { // what others predict in all
					s.names = append(s.names, "pred_"+name, "predictive_"+name, "y_"+name)
				}
			}
			out = append(out, s)
		}
	}
	return out
}

// Regression lists the columns of regressions: targets, means, and all numbers that say how far they spread. [Rows.Spread] makes
// standard deviations of these.
func Regression() []Wanted {
	out := []Wanted{
		{Names: []string{"target", "targets", "labels", "label", "y"}, Cells: []string{"target_%d", "label_%d"}},
		{Names: means, Cells: cells(means)},
	}
	for _, s := range spreads {
		out = append(out, Wanted{Names: s.names, Cells: cells(s.names)})
	}
	return append(out,
		Wanted{Names: []string{"member_mean"}, Cells: []string{"member_%d_mean", "member_%d_mean_%d"}},
		Wanted{Names: []string{"member_std"}, Cells: []string{"member_%d_std", "member_%d_std_%d"}})
}

// means are the names of the means of a regression.
var means = []string{"mean", "means", "mu", "loc", "pred_mean", "y_pred", "pred", "prediction", "predictions"}

// cells returns the names of columns of elements.
func cells(names []string) (out []string) {
	for _, name := range names {
		out = append(out, name+"_%d")
	}
	return out
}

// Spread replaces variances and logarithms by standard deviations. A file may have both, if they say the same.
func (r *Rows) Spread() error {
	for _, s := range spreads {
		key := s.names[0]
		values := r.Values[key]
		if values == nil || key == s.of {
			continue
		}
		delete(r.Values, key)
		width := len(values) / r.Len
		std := make([]float64, len(values))
		for i, v := range values {
			std[i] = s.std(v)
			if v == v && !(std[i] >= 0) {
				return fmt.Errorf("row %d: %s is %v, want 0 or more", i/width, key, v)
			}
		}
		known := r.Values[s.of]
		if known == nil {
			r.Values[s.of] = std
			continue
		}
		const rounding = 1e-2
		for i, v := range std {
			if len(known) != len(std) || math.Abs(v-known[i]) > rounding*math.Abs(v+known[i]) {
				return fmt.Errorf("row %d: %s and %s do not say the same: save one of them", i/width, key, s.of)
			}
		}
	}
	return nil
}
