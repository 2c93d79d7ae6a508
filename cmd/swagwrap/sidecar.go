package main

import (
	"encoding/json"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer/intake"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/task"
)

// maxSidecar is larger than any sidecar, in bytes. A sidecar lists the members' checkpoints and the sources.
const maxSidecar = 256 << 20

// sidecar is the content of FILE.meta.json.
type sidecar struct {
	Program     string               `json:"program"`
	ONNXRuntime string               `json:"onnxruntime"`
	Provider    string               `json:"provider"`           // execution provider and precision
	Rounding    *rounding.Change     `json:"rounding,omitempty"` // for a precision below float32
	Intake      []*intake.Report     `json:"intake,omitempty"`   // findings of the checks of the data, for each posterior
	Command     []string             `json:"command"`
	Ensemble    ensemble.Reference   `json:"ensemble"`
	Components  []ensemble.Component `json:"components"`
	Sampling    ensemble.Sampling    `json:"sampling"`
	Preprocess  preprocess.Settings  `json:"preprocess"`          // of the data
	AsSeen      bool                 `json:"as_seen,omitempty"`   // arrays reached the network unchanged: --arrays
	Calibration *task.Calibration    `json:"calibration"`         // of the average; null for none
	Threshold   float64              `json:"threshold,omitempty"` // of the task binary; 0 for the usual one
	Sources     []dataset.Source     `json:"sources"`
	Tasks       []string             `json:"tasks"`
	Format      string               `json:"format"`
	Columns     []string             `json:"columns"` // of a CSV file
	ClassNames  []string             `json:"class_names"`
	Rows        int                  `json:"rows"`
	Errors      int                  `json:"errors"` // number of rows with an error
	// Parameters are compared by --resume.
	Parameters records.Parameters `json:"parameters"`
}

// sidecarOf returns the path of the sidecar of a result.
func sidecarOf(output string) string { return output + ".meta.json" }

// about returns the sidecar with everything that is known before scoring.
func (job *scoreJob) about(c *cli.Context) *sidecar {
	e := job.ensemble
	s := &sidecar{
		Program: flags.Producer(), Command: os.Args, Provider: job.provider.String(), Rounding: job.rounding, Intake: job.intake,
		Ensemble: ensemble.Reference{Path: c.Args().First(), ID: e.ID}, Components: e.Components, Sampling: e.Sampling,
		Preprocess: job.preprocess, AsSeen: dataset.AsSeen(job.data), Calibration: e.Calibration, Threshold: job.scorer.Threshold(), Sources: job.data.Sources(), Tasks: job.scorer.Tasks(),
		Format: job.format, Columns: job.schema.Header(), ClassNames: job.schema.ClassNames,
		Rows: job.data.Len(), Parameters: job.parameters,
	}
	json.Unmarshal(job.parameters["onnxruntime"], &s.ONNXRuntime) // it is a JSON string
	return s
}

// write writes the sidecar of the result at path. The caller commits it.
func (s *sidecar) write(path string) (*flags.Output, error) {
	out, err := flags.CreateOutput(sidecarOf(path), true)
	if err != nil {
		return nil, err
	}
	if err := flags.WriteJSON(out, s); err != nil {
		out.Abort()
		return nil, flags.BadOutput(err)
	}
	return out, nil
}
