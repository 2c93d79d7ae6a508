package main

import (
	"encoding/json"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// sidecar is what FILE.meta.json holds.
type sidecar struct {
	Program     string                  `json:"program"`
	ONNXRuntime string                  `json:"onnxruntime"`
	Command     []string                `json:"command"`
	Ensemble    ensemble.Reference      `json:"ensemble"`
	Components  []ensemble.Component    `json:"components"`
	Sampling    ensemble.Sampling       `json:"sampling"`
	Preprocess  preprocess.Settings     `json:"preprocess"`  // of the data
	Temperature float64                 `json:"temperature"` // 0 for none
	Vector      *ensemble.VectorScaling `json:"vector_scaling,omitempty"`
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

func (job *scoreJob) sidecar() string { return job.output + ".meta.json" }

// partial is the path of the work file.
func (job *scoreJob) partial() string { return job.output + ".partial" }

func (job *scoreJob) writeSidecar(c *cli.Context, failed int) error {
	e := job.ensemble
	var runtime string
	if err := json.Unmarshal(job.parameters.Get("onnxruntime"), &runtime); err != nil {
		return err
	}
	out, err := flags.CreateOutput(job.sidecar(), true)
	if err != nil {
		return err
	}
	defer out.Abort()
	err = flags.WriteJSON(out, sidecar{
		Program: flags.Producer(), ONNXRuntime: runtime, Command: os.Args,
		Ensemble: ensemble.Reference{Path: c.Args().First(), ID: e.ID}, Components: e.Components, Sampling: e.Sampling,
		Preprocess: job.preprocess, Temperature: e.Temperature, Vector: e.Vector, Sources: job.data.Sources(), Tasks: job.scorer.Tasks(),
		Format: job.format, Columns: job.schema.Header(), ClassNames: job.schema.ClassNames,
		Rows: job.data.Len(), Errors: failed, Parameters: job.parameters,
	})
	if err != nil {
		return flags.BadOutput(err)
	}
	return out.Commit()
}
