package study

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
)

// Other is data that validation data must not share examples with. It is the test data, or Training data.
type Other struct {
	Path     string
	Data     dataset.Dataset // or nil
	Training bool
}

// Twice returns a warning for each data set that has examples of the validation data, by their content. What is fitted on
// such data looks better than it is.
func Twice(path string, validation dataset.Dataset, others ...Other) (warnings []string) {
	for _, o := range others {
		if validation == nil || o.Data == nil {
			continue
		}
		s := dataset.Shared(validation, o.Data)
		if s.Examples == 0 {
			continue
		}
		n, of := report.Thousands(s.Examples), report.Plural(validation.Len(), dataset.Unit(validation))
		if s.All {
			n = "all"
		}
		if o.Training {
			warnings = append(warnings, fmt.Sprintf("The validation data %s and the training data %s have examples in common: %s of %s. "+
				"Networks are surer of these than of new data, so temperatures and other numbers that are fitted on them are too small. "+
				"Fit on data that training has not seen.", path, o.Path, n, of))
			continue
		}
		warnings = append(warnings, fmt.Sprintf("The validation data %s and the test data %s have examples in common: %s of %s. "+
			"Temperatures and other numbers were fitted on them, so their rows, their intervals and what to deploy do not hold for new "+
			"data. Test on other data.", path, o.Path, n, of))
	}
	return warnings
}
