package guarantee

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/setting"
)

// Made says how predictions were made, as far as that is not in the file of the ensemble. Add a field for whatever changes the
// predictions of an ensemble, and its words to changes.
type Made struct {
	// Statistics identifies the batch-norm statistics. It is empty for those of the file.
	Statistics string `json:"statistics,omitempty"`
	// Shares identifies the class shares that the probabilities were corrected for. It is empty without a correction.
	Shares string `json:"shares,omitempty"`
}

// changes names what makes predictions unlike those that chose a guarantee.
var changes = []struct {
	of   func(Made) string
	name string
	by   setting.Setting
}{
	{func(m Made) string { return m.Statistics }, "batch-norm statistics", setting.Adapt},
	{func(m Made) string { return m.Shares }, "class shares", setting.Shares},
}

// Void returns why the guarantee does not hold for predictions that were made like that. It is nil if nothing is known against it:
// a guarantee holds for predictions that were made like those that chose the thresholds.
func (g *Guarantee) Void(made Made) (why []string) {
	if g.Empty() {
		return nil
	}
	for _, c := range changes {
		if g.Coverage != nil && c.of(g.Coverage.Data.Made) != c.of(made) || g.Answers != nil && c.of(g.Answers.Data.Made) != c.of(made) {
			why = append(why, fmt.Sprintf("the thresholds were chosen with other %s (%v)", c.name, c.by))
		}
	}
	return why
}
