package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
)

func (job *scoreJob) note(r *predictions.Row) {
	job.summary.Add(r)
	if job.shown != nil && r.Error == "" {
		tile := job.shown.task.Tile(job.summary.Own(r), r.Label, job.schema.ClassNames)
		tile.Lines = append(tile.Lines, guarantee.Lines(job.schema.Columns, r.Values, job.schema.ClassNames)...)
		job.shown.Add(r.Index, tile)
	}
}

// conclude prints what was written, and its scores if there are labels.
func (job *scoreJob) conclude() error {
	s := job.summary
	job.Logf("%s: %s, %s", job.output.Path, report.Plural(s.Rows, "example"), report.Plural(job.Ensemble.Members(), "member"))
	if done := s.Rows - s.Failed; s.Settled && done > 0 {
		mean := s.Ran / float64(done)
		job.Logf("members that ran: %s on average (%s × fewer passes)", report.Fixed(mean, 1),
			report.Fixed(float64(job.Ensemble.Members())/mean, 1))
	}
	if err := job.tell(job.output.Path, s); err != nil {
		return err
	}
	if s.Labelled >= usualFolds && !task.Large(job.scorer.Task()) && (job.want.Outcomes || job.format == ".npz") &&
		job.Ensemble.Calibration == nil && job.Ensemble.Guarantee.Empty() {
		job.Next(console.Shell("swagwrap", "calibrate", "-o", "calibrated.safetensors", "--ensemble", job.ensemble, job.output.Path))
	}
	return nil
}

// tell prints the scores of the rows of the result at path.
func (a *app) tell(path string, s *summary.Summary) error {
	if s.Labelled > 0 {
		e := s.Evaluation()
		a.Logf("%s", summary.Sentence(e))
		if s.Groups != nil && !a.Quiet {
			if err := study.Groups(s.Groups).Table().WriteText(a.Stderr, a.Screen()); err != nil {
				return console.BadOutput(err)
			}
		}
		if e.Warnings != nil {
			a.Warnf("%s", strings.Join(study.Texts(e.Warnings), "; "))
		}
	}
	if w := s.Misfit(); w != "" {
		a.Warnf("%s", w)
	}
	for _, line := range s.SharesLines() {
		a.Logf("%s", line)
	}
	if e := s.Expected(); e != nil {
		for _, line := range e.Lines() {
			a.Logf("%s", line)
		}
	}
	if w := s.OneClass(); w != "" {
		a.WarnLong(w)
	}
	w := s.Drifted()
	if w != "" {
		a.Warnf("%s", w)
	}
	if s.Realised != nil {
		if strange := s.Realised.Strange(); strange != "" {
			a.Warnf("%s", strange)
		}
		r := s.Realised.Finish(w != "")
		for _, line := range r.Lines(s.Names()) {
			a.Logf("%s", line)
		}
		if r != nil && r.Void {
			a.Warnf("the guarantee is void for this data: %s", strings.Join(r.Because, "; "))
		}
	}
	if s.Failed > 0 {
		a.Warnf("the first error: %s", s.First)
		return incomplete(path, s.Failed, s.Rows)
	}
	return nil
}

// incomplete returns the error of a run that could not read all examples.
func incomplete(path string, failed, rows int) error {
	return console.Incomplete("%s: %s of %s rows have an error and no prediction", path, report.Thousands(failed), report.Thousands(rows))
}

// about returns the sidecar with everything that is known before scoring.
func (job *scoreJob) about() *summary.Sidecar {
	e := job.Ensemble
	s := &summary.Sidecar{
		Program:     console.Producer(),
		Command:     os.Args,
		Provider:    job.engine.Provider().String(),
		Probe:       job.probe,
		Ensemble:    ensemble.Reference{Path: job.ensemble, ID: e.ID},
		Components:  e.Components,
		Sampling:    e.Sampling,
		Preprocess:  job.Preprocess,
		AsSeen:      dataset.AsSeen(job.Data),
		Calibration: e.Calibration,
		Threshold:   job.scorer.Threshold(),
		Guarantee:   e.Guarantee,
		Sources:     job.Data.Sources(),
		Task:        job.scorer.Task().About().Name,
		Tasks:       job.scorer.Tasks(),
		Format:      job.format,
		Columns:     job.schema.Header(),
		ClassNames:  job.schema.ClassNames,
		Drift:       summary.NewDrift(e.Validation),
		Blocks:      summary.NewBlocks(job.Blocks, job.examples),
		Expected:    summary.NewExpected(e.Expected),
		Shares:      job.corrects(),
		Rows:        job.examples,
		Parameters:  job.parameters,
		Rounding:    job.rounding,
	}
	json.Unmarshal(job.parameters["onnxruntime"], &s.ONNXRuntime) // it is a JSON string
	cut, _ := dataset.CutOf(job.Data)
	for _, name := range cut.Documents {
		s.Documents = append(s.Documents, summary.Document{Name: name})
	}
	return s
}

// writeSidecar writes the sidecar of the result at path. The caller commits it.
func writeSidecar(s *summary.Sidecar, path string) (*console.Output, error) {
	out, err := console.CreateOutput(path+summary.Suffix, true)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = console.WriteJSON(&text, s)
	if err == nil {
		_, err = out.Write(file.NamedJSON(text.Bytes()))
	}
	if err != nil {
		out.Abort()
		return nil, console.BadOutput(err)
	}
	return out, nil
}

// maxNext bounds the rows of --next-labels, which are kept in memory.
const maxNext = 100_000

func nextLabels(field *int) *flags.Row {
	return flags.Integer(flags.Row{
		Name: "next-labels",
		Usage: "list `N` rows to label next, for a better accuracy or error to expect: the uncertain more often, of all kinds of " +
			"predictions",
		Not: "outputs part",
	}, field, 1, maxNext)
}

// chooseNext makes the summary of a task's predictions choose n rows to label, if n is not 0.
func chooseNext(s *summary.Summary, t task.Task, n int) error {
	if n == 0 || s.Choose(n) {
		return nil
	}
	if why := task.NoSigns(t); why != "" {
		return console.Usagef("leave out --next-labels", "--next-labels: %s", why)
	}
	return console.Usagef("swagwrap calibrate --ensemble stores it, from labelled predictions",
		"--next-labels: the ensemble does not know its accuracy on validation data")
}
