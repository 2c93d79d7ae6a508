package study

import (
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
)

// A Step is what to do after a study, as a value. The program knows how a user types it: see [Spell].
type Step interface{ step() }

// Sample makes an ensemble.
type Sample struct {
	Output   string
	Members  ensemble.Settings // how the members are made
	Settings string            // the file with the same settings, or ""
	// Training is the path of the data that recomputes batch-norm statistics, as the study did. It is "" if nothing is
	// recomputed.
	Training string
	// Target is the path of the data to which the statistics are adapted, or "", and Weight its share in them.
	Target string
	Weight float64
	// Folders have the checkpoints of each posterior, if these are the members and are not where the posteriors say.
	Folders    []string
	Posteriors []string
}

// Score predicts with an ensemble.
type Score struct {
	Output, Ensemble string
	Data             string // "" stands for labelled data that the user has to name
	KeepMembers      bool   // for what is fitted to all members
	AsValidation     bool   // the data is read as the study's validation data
	Plain            bool   // with the statistics from before the ensemble was adapted
}

// Calibrate fits a calibration to predictions, and writes the ensemble with it.
type Calibrate struct {
	Output, Ensemble, Predictions string
	Method                        string  // "" for the first of the task
	Threshold                     float64 // 0 for the usual one
}

// Export writes an ensemble as a model.
type Export struct {
	Output, Ensemble string
	First            bool // its first member alone
}

// Sweep tries settings of SWAG. The user names the data to choose and to test on.
type Sweep struct {
	Training  string // see [Sample]
	Posterior string
}

func (Sample) step()    {}
func (Score) step()     {}
func (Calibrate) step() {}
func (Export) step()    {}
func (Sweep) step()     {}

// Spell returns a step as the line of a shell. It may be nil, if nobody sees the steps.
type Spell func(Step) string

// Lines returns steps as the lines of a shell. The list is never nil.
func (s Spell) Lines(steps []Step) []string {
	lines := []string{}
	if s == nil {
		return lines
	}
	for _, step := range steps {
		lines = append(lines, s(step))
	}
	return lines
}

// Training returns the path of training data, or "" for nil.
func Training(data dataset.Dataset) string {
	if data == nil {
		return ""
	}
	return data.Sources()[0].Path
}

// ExportOf returns the step that exports an ensemble of so many members of networks. A model of several members cannot
// return the states of each, so there is none then.
func ExportOf(model, ensemble string, members int, networks ...*infer.Network) []Step {
	carries := slices.ContainsFunc(networks, func(n *infer.Network) bool { return n.States() != nil })
	if carries && members > 1 {
		return nil
	}
	return []Step{Export{Output: model, Ensemble: ensemble, First: carries}}
}
