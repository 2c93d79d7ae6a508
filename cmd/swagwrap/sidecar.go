package main

import (
	"encoding/json"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// sidecar is what FILE.meta.json holds.
type sidecar struct {
	Program     string                  `json:"program"`
	ONNXRuntime string                  `json:"onnxruntime"`
	Provider    string                  `json:"provider"`           // what computed, and how precisely
	Rounding    *rounding.Change        `json:"rounding,omitempty"` // of a precision below float32
	Command     []string                `json:"command"`
	Ensemble    ensemble.Reference      `json:"ensemble"`
	Components  []ensemble.Component    `json:"components"`
	Sampling    ensemble.Sampling       `json:"sampling"`
	Preprocess  preprocess.Settings     `json:"preprocess"`  // of the data
	Temperature float64                 `json:"temperature"` // 0 for none
	Vector      *ensemble.VectorScaling `json:"vector_scaling,omitempty"`
	Threshold   float64                 `json:"threshold,omitempty"` // of the task binary; 0 for the usual one
	Sources     []dataset.Source        `json:"sources"`
	Tasks       []string                `json:"tasks"`
	Format      string                  `json:"format"`
	Columns     []string                `json:"columns"` // of a CSV file
	ClassNames  []string                `json:"class_names"`
	Rows        int                     `json:"rows"`
	Errors      int                     `json:"errors"` // rows that have one
	// Parameters are what --resume compares.
	Parameters predictions.Parameters `json:"parameters"`
}

// sidecarOf is the path of what stands beside a result.
func sidecarOf(output string) string { return output + ".meta.json" }

// partial is the path of the work file.
func (job *scoreJob) partial() string { return job.target() + ".partial" }

// about is what is known before there are rows.
func (job *scoreJob) about(c *cli.Context) *sidecar {
	e := job.ensemble
	s := &sidecar{
		Program: flags.Producer(), Command: os.Args, Provider: job.provider.String(), Rounding: job.rounding,
		Ensemble: ensemble.Reference{Path: c.Args().First(), ID: e.ID}, Components: e.Components, Sampling: e.Sampling,
		Preprocess: job.preprocess, Temperature: e.Temperature, Vector: e.Vector, Threshold: job.scorer.Threshold(), Sources: job.data.Sources(), Tasks: job.scorer.Tasks(),
		Format: job.format, Columns: job.schema.Header(), ClassNames: job.schema.ClassNames,
		Rows: job.data.Len(), Parameters: job.parameters,
	}
	json.Unmarshal(job.parameters.Get("onnxruntime"), &s.ONNXRuntime) // is a text
	return s
}

// write puts it beside the result at path.
func (s *sidecar) write(path string) error {
	out, err := flags.CreateOutput(sidecarOf(path), true)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := flags.WriteJSON(out, s); err != nil {
		return flags.BadOutput(err)
	}
	return out.Commit()
}
