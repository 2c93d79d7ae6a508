package predictions

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
)

// written returns the names of all columns that score writes, in addition to the predictions. No reader needs them all.
var written = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{"label": true, "labels": true, "target": true}
	all := task.RowOptions{
		Top:         2,
		Outcomes:    true,
		Members:     2,
		Target:      true,
		Each:        true,
		EachOutcome: true,
		Settled:     true,
		Set:         true,
		Interval:    true,
		Abstain:     true,
	}
	for of, count := range map[string]int{"classes": 2, "binary": 1, "labels": 2, "regression": 2} {
		t, err := task.New(of, task.OutputSpec{Count: count})
		if err != nil {
			continue
		}
		for _, c := range task.RowColumns(t, all) {
			names[c.Name], names[c.Name+"_probability"], names[c.Name+"_class"] = true, true, true
			if c.Cell != "" {
				names[indexed.ReplaceAllString(strings.ReplaceAll(c.Cell, "%d", "0"), "")] = true
			}
		}
	}
	return names
})

// indexed matches the indices in names of columns of elements, such as _3 in member_3_mean.
var indexed = regexp.MustCompile(`_\d+`)

// unused returns the names that are not used and that score does not write.
func unused(names []string, used func(name string) bool) (out []string) {
	ours := slices.ContainsFunc([]string{"confidence", "predictive_entropy", "epistemic_std", "mutual_informations", "entropies"},
		func(name string) bool {
			return slices.Contains(names, name) || slices.Contains(names, name+"_0")
		})
	for _, name := range names {
		switch {
		case used(name), name == "", name == "path", name == "error", strings.HasPrefix(name, "member_"):
		case ours && (written()[name] || written()[indexed.ReplaceAllString(name, "")]):
		default:
			out = append(out, name)
		}
	}
	return out
}

// LeftOut says which arrays or columns of the file at path are not used. It is "" if there are none.
func LeftOut(path string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	const most = 20
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Sprintf("%s: left out, since no number of it is used: %s%s", path, numpy.Quote(names[:min(len(names), most)]), more)
}

// spreadLike matches names that may say how uncertain a prediction is.
var spreadLike = regexp.MustCompile(`(?i)(^|_)(var|variances?|std|sd|sigma|scales?|precision|uncertaint(y|ies)|unc|uct|lower|upper|low|high|lo|hi|quantiles?|q\d+|cov|covariances?|mad|se|stderr)(_|\d|$)`)

// SpreadLike returns those of the names that may belong to standard deviations, variances or intervals.
func SpreadLike(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !spreadLike.MatchString(name) })
}
