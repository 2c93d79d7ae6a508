package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer/intake"
	"github.com/swagwrap/swagwrap/internal/infer/rounding"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// note adds a row to the summary and to the montage.
func (job *scoreJob) note(r *predictions.Row) {
	job.summary.add(r)
	if job.montage != nil && r.Error == "" {
		job.montage.Add(r.Index, job.montage.task.Tile(r.Values, r.Label, job.schema.ClassNames))
	}
}

// summary adds up the scores of the predictions.
type summary struct {
	rows, failed int
	first        string // the first error
	labelled     int
	scores       task.Evaluator
	evaluated    *task.Evaluation // of all rows
	groups       *task.Groups     // of --groups, or nil
	drift        *drift           // nil for an ensemble that has seen no validation data
	classNames   []string
	settled      bool
	ran          float64 // members of all rows, if examples settle
}

// newSummary prepares for rows of a task. d is the drift that is known before, and g is that of --groups.
func newSummary(t task.Task, schema *predictions.Schema, d *drift, g task.Grouping) *summary {
	s := &summary{scores: t.NewEvaluator(task.EvaluateOptions{MainOnly: true, NoLosses: true}), drift: d.begin(t, schema.Columns, g), classNames: schema.ClassNames}
	if g.Unit != nil || g.Report != nil {
		s.groups = task.NewGroups(t, g, task.EvaluateOptions{})
	}
	return s
}

func (s *summary) add(r *predictions.Row) {
	s.rows++
	if r.Error != "" {
		if s.failed++; s.failed == 1 {
			s.first = r.Error
		}
		return
	}
	if s.settled {
		s.ran += r.Values[len(r.Values)-1]
	}
	if s.drift != nil {
		s.drift.add(r)
	}
	if s.groups != nil {
		for _, e := range s.groups.At(r.Index, r.Path) {
			e.AddRow(r.Values, r.Label, r.Sums)
		}
	}
	if s.scores.AddRow(r.Values, r.Label, r.Sums) {
		s.labelled++
	}
}

// evaluation scores all rows, once.
func (s *summary) evaluation() *task.Evaluation {
	if s.evaluated == nil {
		s.evaluated = s.scores.Evaluation()
	}
	return s.evaluated
}

// sentence returns the main scores as text, with their intervals if they have one.
func sentence(e *task.Evaluation) string {
	var list []string
	for _, x := range e.Scores {
		if x.Value != x.Value || x.Further && !x.Brief || strings.HasSuffix(x.Key, "_low") || strings.HasSuffix(x.Key, "_high") {
			continue
		}
		text := strings.TrimSpace(x.Header + " " + study.Cell(x) + " " + x.Unit)
		if low := x.Key + "_low"; e.Has(low) && e.Value(low) == e.Value(low) {
			text += fmt.Sprintf(" [%s, %s]", study.Cell(e.Score(low)), study.Cell(e.Score(x.Key+"_high")))
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// conclude prints what was written, and its scores if there are labels.
func (a *app) conclude(c *cli.Context, job *scoreJob) error {
	s := job.summary
	a.Logf(c, "%s: %s, %s", job.output, report.Plural(s.rows, "example"), report.Plural(job.Ensemble.Members(), "member"))
	if done := s.rows - s.failed; s.settled && done > 0 {
		mean := s.ran / float64(done)
		a.Logf(c, "members that ran: %s on average (%s × fewer passes)", report.Fixed(mean, 1), report.Fixed(float64(job.Ensemble.Members())/mean, 1))
	}
	if err := a.tell(c, job.output, s); err != nil {
		return err
	}
	if _, dense := job.scorer.Task().(task.Dense); s.labelled > 0 && !dense && (c.Bool("probs") || job.format == ".npz") {
		a.Next(c, study.Shell("swagwrap", "calibrate", "-o", "calibrated.safetensors", "--ensemble", c.Args().First(), job.output))
	}
	return nil
}

// tell prints the scores of the rows of the result at path.
func (a *app) tell(c *cli.Context, path string, s *summary) error {
	if s.labelled > 0 {
		e := s.evaluation()
		a.Logf(c, "%s", sentence(e))
		if s.groups != nil && !c.Bool("quiet") {
			if err := study.GroupsTable(s.groups).WriteText(a.Stderr, a.Screen(c)); err != nil {
				return flags.BadOutput(err)
			}
		}
		if e.Warnings != nil {
			a.Warnf(c, "%s", strings.Join(study.Texts(e.Warnings), "; "))
		}
	}
	if s.drift != nil {
		if w := s.drift.finish().warning(s.classNames); w != "" {
			a.Warnf(c, "%s", w)
		}
	}
	if s.failed > 0 {
		a.Warnf(c, "the first error: %s", s.first)
		return incomplete(path, s.failed, s.rows)
	}
	return nil
}

// incomplete returns the error of a run that could not read all examples.
func incomplete(path string, failed, rows int) error {
	return flags.Incomplete("%s: %s of %s rows have an error and no prediction", path, report.Thousands(failed), report.Thousands(rows))
}

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
	Task        string               `json:"task"`  // its name
	Tasks       []string             `json:"tasks"` // of each network, in words
	Format      string               `json:"format"`
	Columns     []string             `json:"columns"` // of a CSV file
	ClassNames  []string             `json:"class_names"`
	Documents   []document           `json:"documents,omitempty"` // of a text
	Rows        int                  `json:"rows"`
	Errors      int                  `json:"errors"` // number of rows with an error
	// Drift compares the predictions with those of validation data; nil if the ensemble has none.
	Drift *drift `json:"drift,omitempty"`
	// Groups has the figures of --groups; nil without them.
	Groups any `json:"groups,omitempty"`
	// Parameters are compared by --resume.
	Parameters records.Parameters `json:"parameters"`
}

// sidecarOf returns the path of the sidecar of a result.
func sidecarOf(output string) string { return output + inputs.SidecarSuffix }

func readSidecar(path string) (*sidecar, error) {
	js, err := file.Read(path, maxSidecar)
	if err != nil {
		return nil, err
	}
	s := new(sidecar)
	return s, file.Error(path, json.Unmarshal(js, s))
}

// document has the figures of a document of a text.
type document struct {
	Name   string             `json:"name"`
	Scores map[string]float64 `json:"scores,omitempty"`
}

// fill sets the figures of documents from those of all rows.
func (s *sidecar) fill(from *summary) {
	s.Drift = from.drift.finish()
	if from.labelled == 0 {
		return
	}
	if from.groups != nil {
		s.Groups = study.GroupsJSON(from.groups)
	}
	if len(s.Documents) == 0 {
		return
	}
	for _, p := range from.evaluation().Parts {
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

// about returns the sidecar with everything that is known before scoring.
func (job *scoreJob) about(c *cli.Context) *sidecar {
	e := job.Ensemble
	s := &sidecar{
		Program: flags.Producer(), Command: os.Args, Provider: job.engine.Provider.String(), Intake: job.intake,
		Ensemble: ensemble.Reference{Path: c.Args().First(), ID: e.ID}, Components: e.Components, Sampling: e.Sampling,
		Preprocess: job.Preprocess, AsSeen: dataset.AsSeen(job.Data), Calibration: e.Calibration, Threshold: job.scorer.Threshold(), Sources: job.Data.Sources(), Task: job.scorer.Task().About().Name, Tasks: job.scorer.Tasks(),
		Format: job.format, Columns: job.schema.Header(), ClassNames: job.schema.ClassNames,
		Drift: newDrift(e.Validation), Rows: job.examples, Parameters: job.parameters,
	}
	s.Rounding, _ = job.engine.Rounding.(*rounding.Change)
	json.Unmarshal(job.parameters["onnxruntime"], &s.ONNXRuntime) // it is a JSON string
	cut, _ := dataset.CutOf(job.Data)
	for _, name := range cut.Documents {
		s.Documents = append(s.Documents, document{Name: name})
	}
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
