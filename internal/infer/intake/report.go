package intake

import (
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A Report is what the checks of one data set found for one network. It is kept in the
// files that a run writes.
type Report struct {
	Data     string `json:"data"`     // the path that the user gave
	Examples int    `json:"examples"` // that the checks looked at
	// Scores says what the scores were taken for; nil of a regression.
	Scores   *Decision `json:"scores,omitempty"`
	Warnings []string  `json:"warnings,omitempty"` // each names the likely cause and the fix
	// Inputs are the moments of each input of the network.
	Inputs []moments.Summary `json:"inputs,omitempty"`
	// Depends says how an example's scores depend on its batch; nil if they do not.
	Depends *Dependence `json:"depends,omitempty"`
	// BatchSize is what the user chose for a network whose examples depend on each other.
	BatchSize int `json:"batch_size,omitempty"`
}

// Warn adds a warning.
func (r *Report) Warn(what string) { r.Warnings = append(r.Warnings, what) }

// CheckScores decides what the scores of r's network are, and tells the network. Of a
// regression it checks the numbers. An [*Unclear] error says that nothing decides, or that the
// model card is wrong.
func (r *Runner) CheckScores(report *Report, raw *Raw) error {
	if task.Numeric(raw.Task) {
		said, err := infer.RegressionSpec(r.Posterior.Card)
		if err != nil || said == nil {
			return err
		}
		first, second := r.Halves()
		return raw.CheckNumbers(report, *said, first, second)
	}
	d, err := raw.Decide()
	if err != nil {
		return err
	}
	report.Scores = d
	if d == nil || d.By == "default" || d.Form == raw.Known {
		return nil
	}
	return r.Decide(d.Form)
}
