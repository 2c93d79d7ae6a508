package task

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/truth"
)

// PyTorch returns the lines of Python that apply the calibration to the scores of a model of PyTorch, for the named task. x is a
// batch of inputs. axis is that of [OutputSpec]; 0 stands for the last.
func (c *Calibration) PyTorch(name string, form Form, axis int) []string {
	if Truth(name) == truth.Numbers {
		return []string{
			"mean, variance = model(x).chunk(2, dim=1)  # of the targets, as the head gives them",
			fmt.Sprintf("variance = variance * torch.tensor(%s)", list(c.Factors)),
		}
	}
	independent := name == "binary" || Truth(name) == truth.Labels
	scores := "scores = model(x)"
	switch {
	case form == Probabilities && independent:
		scores += ".logit()"
	case form == LogProbabilities && independent:
		scores = "scores = model(x).exp().logit()"
	case form == Probabilities:
		scores += ".log()"
	}
	if axis == 0 {
		axis = -1
	}
	end := fmt.Sprintf(", dim=%d)", axis)
	activation := "torch.softmax("
	if independent {
		activation, end = "torch.sigmoid(", ")"
	}
	if c.mapped() {
		return append([]string{scores}, c.mapLines(independent, axis)...)
	}
	if c.Method == ByTemperature {
		return []string{scores, fmt.Sprintf("probabilities = %sscores / %v%s", activation, c.Temperature, end)}
	}
	if !independent {
		scores = strings.Replace(scores, "model(x)", "torch.log_softmax(model(x)"+end, 1)
		if form == Probabilities || form == LogProbabilities {
			scores = "scores = model(x)" + map[Form]string{Probabilities: ".log()"}[form]
		}
	}
	first, back := "scores", ""
	if !independent && axis != -1 { // a number for each class needs the classes in the last place
		first, back, end = fmt.Sprintf("scores.movedim(%d, -1)", axis), fmt.Sprintf(".movedim(-1, %d)", axis), ", dim=-1)"
	}
	return []string{scores, fmt.Sprintf("probabilities = %s%s * torch.tensor(%s) + torch.tensor(%s)%s%s", activation, first, list(c.Scale), list(c.Bias), end, back)}
}

// list writes numbers as a list of Python.
func list(values []float64) string {
	var words []string
	for _, v := range values {
		words = append(words, fmt.Sprint(v))
	}
	return "[" + strings.Join(words, ", ") + "]"
}
