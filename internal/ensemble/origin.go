package ensemble

import (
	"encoding/json"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// The kinds of exported models.
const (
	ModelEnsemble = "ensemble" // members and their average in one graph
	ModelSWA      = "swa"      // the mean of the weights
	ModelMember   = "member"
)

// The keys of an exported model's metadata that other packages read. docs/formats.md lists all.
const (
	KeyKind        = "swagwrap.kind"
	KeyOrigin      = "swagwrap.origin"
	KeyCard        = "swagwrap.model_card"
	KeyCalibration = "swagwrap.calibration"     // is in the graph
	KeyGuarantee   = "swagwrap.guarantee"       // what is guaranteed, and the data that chose it
	KeyFigures     = "swagwrap.figures"         // what compare measured
	KeyReference   = "swagwrap.reference"       // what the model gave for a few examples when it was exported
	KeyInput       = "swagwrap.input"           // [InputPixels], or nothing for the networks' own input
	keyTraining    = "swagwrap.training_shares" // of classes, which the probabilities assume
	KeyApply       = "swagwrap.apply"           // a calibration that is not in the graph: the caller applies it to the scores
)

// InputPixels says that a model takes 8-bit pixels of the network's size, and normalises them itself.
const InputPixels = "pixels"

// Origin says what an exported model was made from. Its paths are names without folders, because a model is given to
// others. The digests identify the files.
type Origin struct {
	Producer   string     `json:"producer"`
	Ensemble   *Reference `json:"ensemble,omitempty"`
	Posteriors []Source   `json:"posteriors"`
	Sampling   *Draw      `json:"sampling,omitempty"` // nil for the mean of the weights
	Member     *int       `json:"member,omitempty"`   // its number, for a model of one member
}

// Source is a posterior, with the checkpoints that it was made from.
type Source struct {
	Reference
	Mean        *swag.Checkpoint  `json:"mean,omitempty"` // the file of the mean, if it was given
	Checkpoints []swag.Checkpoint `json:"checkpoints"`
}

// From adds a posterior to the origin. The path is its own, or the one that an ensemble names.
func (o *Origin) From(path string, p *swag.Posterior) {
	s := Source{Reference: Reference{filepath.Base(path), p.ID}}
	name := func(c swag.Checkpoint) swag.Checkpoint {
		return swag.Checkpoint{Path: filepath.Base(c.Path), SHA256: c.SHA256, StateDict: c.StateDict}
	}
	for _, c := range p.Checkpoints {
		s.Checkpoints = append(s.Checkpoints, name(c))
	}
	if p.GivenMean != nil {
		mean := name(*p.GivenMean)
		s.Mean = &mean
	}
	o.Posteriors = append(o.Posteriors, s)
}

// SetEnsemble names the ensemble.
func (o *Origin) SetEnsemble(e *Ensemble) {
	o.Ensemble, o.Sampling = &Reference{filepath.Base(e.Path), e.ID}, &e.Sampling
}

// ModelMetadata returns the metadata of every exported model. The calibration apply is not in the graph. It is
// nil if there is none.
func ModelMetadata(kind string, card swag.Card, origin *Origin, apply *task.Calibration) (map[string]string, error) {
	out := map[string]string{KeyKind: kind}
	values := map[string]any{KeyCard: card, KeyOrigin: origin}
	if card.ClassNames != nil {
		values["swagwrap.class_names"] = card.ClassNames
	}
	if apply != nil {
		values[KeyApply] = apply
	}
	for key, value := range values {
		js, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		out[key] = string(js)
	}
	if card.Task != "" {
		out["swagwrap.task"] = card.Task
	}
	return out, nil
}
