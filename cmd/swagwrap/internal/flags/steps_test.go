package flags

import (
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/swag"
)

// Settings are the flags of sample that are not as usual.
func TestMembers(t *testing.T) {
	for want, s := range map[string]*ensemble.Settings{
		"--method swag": ensemble.FromSampling(swag.SampleOptions{Seed: 1, Scale: 0.5, Antithetic: true}, 30),
		"--method swag --scale 0.125 --rank 5 --draws independent --members 4 --seed 18446744073709551615": ensemble.FromSampling(
			swag.SampleOptions{Seed: math.MaxUint64, Scale: 0.125, Rank: 5}, 4),
		"--method swag-diag":               ensemble.FromSampling(swag.SampleOptions{Seed: 1, Scale: 1, Covariance: swag.Diagonal, Antithetic: true}, 30),
		"--method swag --draws orthogonal": ensemble.FromSampling(swag.SampleOptions{Seed: 1, Scale: 0.5, Antithetic: true, Orthogonal: true}, 30),
		"--method swa":                     ensemble.FromSampling(swag.SampleOptions{Seed: 1}, 30),
		"--method iterates --members 2 --temperature 1.5973419992094489": {Draw: ensemble.Draw{Seed: 1, Covariance: ensemble.Iterates}, Members: 2, Temperature: 1.5973419992094489},
	} {
		if got := strings.Join(Members(*s), " "); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// A step is the line that a user types, with the flags of the study that hold for it.
func TestSpelling(t *testing.T) {
	given := Spelling{Recomputing: []string{"--bn", "keep", "--bn-samples", "10"}, Reading: []string{"--columns", "a,b", "--labels", "val.csv"}}
	swa := *ensemble.FromSampling(swag.SampleOptions{Seed: 1}, 0)
	for want, step := range map[string]study.Step{
		"swagwrap sample -o e --method swa --bn-data train --bn keep --bn-samples 10 'my posterior'": study.Sample{Output: "e", Members: swa, Training: "train", Posteriors: []string{"my posterior"}},
		"swagwrap sample -o e --method swa --bn keep p q":                                            study.Sample{Output: "e", Members: swa, Posteriors: []string{"p", "q"}},
		"swagwrap sample -o e --settings s.json --bn keep p":                                         study.Sample{Output: "e", Members: swa, Settings: "s.json", Posteriors: []string{"p"}},
		"swagwrap sample -o e --method iterates --checkpoints here p":                                study.Sample{Output: "e", Members: *ensemble.FromCheckpoints(), Folders: []string{"here"}, Posteriors: []string{"p"}},
		"swagwrap sample -o e --method last --checkpoints here p":                                    study.Sample{Output: "e", Members: *ensemble.FromLast(), Folders: []string{"here"}, Posteriors: []string{"p"}},
		"swagwrap score -o o e d":                                                                    study.Score{Output: "o", Ensemble: "e", Data: "d"},
		"swagwrap score --keep-members --columns a,b --labels val.csv -o o e LABELLED":               study.Score{Output: "o", Ensemble: "e", KeepMembers: true, AsValidation: true},
		"swagwrap calibrate -o o --ensemble e p":                                                     study.Calibrate{Output: "o", Ensemble: "e", Predictions: "p"},
		"swagwrap calibrate -o o --method vector --threshold 0.25 --ensemble e p":                    study.Calibrate{Output: "o", Ensemble: "e", Predictions: "p", Method: "vector", Threshold: 0.25},
		"swagwrap export -o o e":                                                                     study.Export{Output: "o", Ensemble: "e"},
		"swagwrap export -o o --member 0 e":                                                          study.Export{Output: "o", Ensemble: "e", First: true},
		"swagwrap sweep --bn-data train --bn keep --bn-samples 10 --val VAL p TEST":                  study.Sweep{Training: "train", Posterior: "p"},
	} {
		if got := given.Line(step); got != want {
			t.Errorf("%+v: %s, want %s", step, got, want)
		}
	}
}

// A posterior without a task does not say what its scores are. The ensemble that is made of it does, so only sample is told.
func TestSpellingOfMeaning(t *testing.T) {
	given := Spelling{Meaning: []string{"--output-name", "logits", "--task", "classes"}}
	swa := *ensemble.FromSampling(swag.SampleOptions{Seed: 1}, 0)
	for want, step := range map[string]study.Step{
		"swagwrap sample -o e --output-name logits --task classes --method swa p": study.Sample{Output: "e", Members: swa, Posteriors: []string{"p"}},
		"swagwrap score -o o e d":                study.Score{Output: "o", Ensemble: "e", Data: "d"},
		"swagwrap calibrate -o o --ensemble e p": study.Calibrate{Output: "o", Ensemble: "e", Predictions: "p"},
		"swagwrap export -o o e":                 study.Export{Output: "o", Ensemble: "e"},
	} {
		if got := given.Line(step); got != want {
			t.Errorf("%+v: %s, want %s", step, got, want)
		}
	}
}
