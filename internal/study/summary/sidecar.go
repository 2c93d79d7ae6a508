package summary

import (
	"encoding/json"
	"strconv"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Suffix ends the name of the sidecar of predictions.
const Suffix = ".meta.json"

// MaxSidecar is larger than any sidecar, in bytes. A sidecar lists the members' checkpoints and the sources.
const MaxSidecar = 256 << 20

// Sidecar is the content of FILE.meta.json.
type Sidecar struct {
	Program     string               `json:"program"`
	ONNXRuntime string               `json:"onnxruntime"`
	Provider    string               `json:"provider"`           // execution provider and precision
	Rounding    *rounding.Change     `json:"rounding,omitempty"` // for a precision below float32
	Runs        *tally.Counts        `json:"runs,omitempty"`     // examples that went through networks, by purpose; nil of merged parts
	Probe       []*probe.Report      `json:"intake,omitempty"`   // findings of the checks of the data, for each posterior
	Command     []string             `json:"command"`
	Ensemble    ensemble.Reference   `json:"ensemble"`
	Components  []ensemble.Component `json:"components"`
	Sampling    ensemble.Draw        `json:"sampling"`
	Preprocess  preprocess.Settings  `json:"preprocess"`          // of the data
	AsSeen      bool                 `json:"as_seen,omitempty"`   // arrays reached the network unchanged: --arrays
	Calibration *task.Calibration    `json:"calibration"`         // calibration of the average; null for none
	Threshold   float64              `json:"threshold,omitempty"` // threshold of the task binary; 0 for the usual one
	// Guarantee is what the ensemble guarantees, and Realised how often that held; nil without.
	Guarantee  *guarantee.Guarantee `json:"guarantee,omitempty"`
	Realised   *guarantee.Realised  `json:"realised,omitempty"`
	Sources    []dataset.Source     `json:"sources"`
	Task       string               `json:"task"`  // its name
	Tasks      []string             `json:"tasks"` // task of each network, in words
	Format     string               `json:"format"`
	Columns    []string             `json:"columns"` // of a CSV file
	ClassNames []string             `json:"class_names"`
	Documents  []Document           `json:"documents,omitempty"` // of a text
	Rows       int                  `json:"rows"`
	Errors     int                  `json:"errors"` // number of rows with an error
	// Drift compares the predictions with those of validation data; nil if the ensemble has none.
	Drift *Drift `json:"drift,omitempty"`
	// Blocks says to which blocks of the rows statistics were adapted; nil without score --adapt blocks=N.
	Blocks *Blocks `json:"blocks,omitempty"`
	// Expected is the accuracy to expect on data without labels; nil if the ensemble knows nothing of it.
	Expected *Expected `json:"expected,omitempty"`
	// Shares says for which class shares the predictions are corrected; nil without score --shares.
	Shares *Shares `json:"shares,omitempty"`
	// Groups has the figures of --groups; nil without them.
	Groups any `json:"groups,omitempty"`
	// Parameters are compared by --resume.
	Parameters records.Parameters `json:"parameters"`
}

// Applied returns the calibration of the rows, with the correction for estimated class shares. It is nil for none.
func (s *Sidecar) Applied() *task.Calibration {
	if s.Shares == nil || s.Shares.Correction == nil {
		return s.Calibration
	}
	return s.Shares.Correction.With(s.Calibration)
}

// ReadSidecar reads the sidecar at path.
func ReadSidecar(path string) (*Sidecar, error) {
	js, err := file.Read(path, MaxSidecar)
	if err != nil {
		return nil, err
	}
	s := new(Sidecar)
	return s, file.Error(path, json.Unmarshal(js, s))
}

// TaskOf returns the task of the predictions in the file at path, by the names that score writes, and by the sidecar of a language
// model's.
func TaskOf(path string) string {
	if s, err := ReadSidecar(path + Suffix); err == nil && task.TraitsOf(s.Task).Text {
		return s.Task
	}
	return predictions.TaskOf(path)
}

// Document has the figures of a document of a text.
type Document struct {
	Name   string             `json:"name"`
	Scores map[string]float64 `json:"scores,omitempty"`
}

// Fill sets the figures of documents from those of all rows.
func (s *Sidecar) Fill(from *Summary) {
	s.Drift, s.Expected = from.drift.finish(from.units.number()), from.Expected()
	s.Blocks, s.Shares = from.blocks.finish(), from.shares
	s.Realised = from.Realised.Finish(from.Drifted() != "")
	if from.Labelled == 0 {
		return
	}
	if from.Groups != nil {
		s.Groups = study.GroupsRow(from.Groups)
	}
	if len(s.Documents) == 0 {
		return
	}
	for _, p := range from.Evaluation().Parts {
		if k, err := strconv.Atoi(p.Name); err == nil && k < len(s.Documents) {
			s.Documents[k].Scores = map[string]float64{}
			for _, score := range p.Scores {
				if score.Value == score.Value {
					s.Documents[k].Scores[score.Key] = score.Value
				}
			}
		}
	}
}
