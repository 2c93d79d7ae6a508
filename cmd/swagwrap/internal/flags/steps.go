package flags

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/swag"
)

// Spelling knows how a user types the steps after a study, with the flags that were given to the study and hold for
// them too.
type Spelling struct {
	Recomputing []string // batch-norm statistics, in addition to the path of the data
	Reading     []string // the validation data
	// Meaning says which output has the scores, and what they are, where the posterior does not. The ensemble then says it.
	Meaning []string
}

// SpellingOf reads it from the table of a study, and from the files with labels of their own.
func SpellingOf(t Table, labels open.Labels) Spelling {
	s := Spelling{t.Words("bn", "augment", "bn-samples", "preprocess", "columns", "label-column", "path-column", "file-order", "scores",
		"text", "arrays", "labels-as", "batch-size"),
		t.Words("preprocess", "scores", "text", "arrays", "labels-as", "columns", "label-column", "path-column", "file-order"),
		t.Words("output-name", "task")}
	path := labels.Validation
	if !t.Is("val") {
		path = labels.Main
	}
	if path != "" {
		s.Reading = append(s.Reading, "--labels", path)
	}
	return s
}

// Line returns a step as the line of a shell.
func (s Spelling) Line(step study.Step) string {
	return console.Shell(append([]string{"swagwrap"}, s.Words(step)...)...)
}

// Labelled stands in a command for labelled data that the user has to name.
const Labelled = "LABELLED"

// Words returns the name of a step's command, and its arguments.
func (s Spelling) Words(step study.Step) []string {
	switch d := step.(type) {
	case study.Sample:
		return s.sample(d)
	case study.Score:
		words := []string{"score"}
		if d.KeepMembers {
			words = append(words, "--keep-members")
		}
		if d.Plain {
			words = append(words, "--adapt", open.NoTarget)
		}
		if d.AsValidation {
			words = append(words, s.Reading...)
		}
		data := d.Data
		if data == "" {
			data = Labelled
		}
		return append(words, "-o", d.Output, d.Ensemble, data)
	case study.Calibrate:
		words := []string{"calibrate", "-o", d.Output}
		if d.Method != "" {
			words = append(words, "--method", d.Method)
		}
		if d.Threshold > 0 {
			words = append(words, "--threshold", exact(d.Threshold))
		}
		return append(words, "--ensemble", d.Ensemble, d.Predictions)
	case study.Export:
		words := []string{"export", "-o", d.Output}
		if d.First {
			words = append(words, "--member", "0")
		}
		return append(words, d.Ensemble)
	case study.Sweep:
		words := append([]string{"sweep"}, s.statistics(d.Training)...)
		return append(words, "--val", "VAL", d.Posterior, "TEST")
	}
	panic(fmt.Sprintf("no words for %T", step))
}

func (s Spelling) sample(d study.Sample) []string {
	words := append([]string{"sample", "-o", d.Output}, s.Meaning...)
	if d.Settings != "" {
		words = append(words, "--settings", d.Settings)
	} else {
		words = append(words, Members(d.Members)...)
	}
	if d.Members.Checkpoints() { // checkpoints have statistics of their own, so no --bn-data follows
		for _, folder := range d.Folders {
			words = append(words, "--checkpoints", folder)
		}
	} else {
		words = append(words, s.statistics(d.Training)...)
	}
	return append(append(words, s.target(d)...), d.Posteriors...)
}

// target returns the flags that adapt members to data, and say how these are read, if no data for batch norm have settled it.
func (s Spelling) target(d study.Sample) []string {
	if d.Target == "" {
		return nil
	}
	words := []string{"--adapt", d.Target}
	if d.Weight != batchnorm.DefaultWeight {
		words = append(words, "--adapt-weight", exact(d.Weight))
	}
	for i := 0; d.Training == "" && i+1 < len(s.Recomputing); i += 2 {
		if !slices.Contains([]string{"--bn", "--augment", "--bn-samples", "--scores", "--batch-size"}, s.Recomputing[i]) {
			words = append(words, s.Recomputing[i:i+2]...)
		}
	}
	return words
}

// statistics returns the flags that give members the batch-norm statistics of the study.
func (s Spelling) statistics(training string) []string {
	if training != "" {
		return append([]string{"--bn-data", training}, s.Recomputing...)
	}
	if i := slices.Index(s.Recomputing, "--bn"); i >= 0 && s.Recomputing[i+1] == "keep" {
		return s.Recomputing[i : i+2]
	}
	return nil
}

// exact formats a number so that it can be read back.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Members returns the flags of sample that give the same settings. It leaves out flags that would set a default.
func Members(s ensemble.Settings) []string {
	method := s.Method()
	draws := method != ensemble.SWA && !s.Checkpoints()
	out := []string{"--method", method}
	add := func(name string, value any) { out = append(out, "--"+name, fmt.Sprint(value)) }
	if covariance, err := swag.ParseCovariance(method); err == nil && s.Scale != covariance.DefaultScale() {
		add("scale", exact(s.Scale))
	}
	if s.Rank != 0 {
		add("rank", s.Rank)
	}
	if draws && !s.Antithetic {
		add("draws", independent)
	} else if draws && s.Orthogonal {
		add("draws", orthogonal)
	}
	if s.Members != 0 && !(draws && s.Members == ensemble.DefaultMembers) {
		add("members", s.Members)
	}
	if s.Seed != 1 && !s.Checkpoints() {
		add("seed", s.Seed)
	}
	if s.Temperature != 0 {
		add("temperature", exact(s.Temperature))
	}
	for _, std := range s.NoiseStd {
		add("noise-std", exact(std))
	}
	if s.Threshold != 0 {
		add("threshold", exact(s.Threshold))
	}
	return out
}
