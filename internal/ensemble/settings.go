package ensemble

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/swag"
)

// The methods of [Settings] have the names that sample's --method takes.
const (
	SWAG     = "swag"
	SWAGDiag = "swag-diag"
	SWA      = "swa"      // θ_SWA alone
	Iterates = "iterates" // the checkpoints, each with its own batch-norm statistics
)

// Methods lists all methods.
var Methods = []string{SWAG, SWAGDiag, SWA, Iterates}

// Kind and version of a settings file; see docs/formats.md.
const (
	SettingsKind    = "swagwrap.settings"
	CalibrationKind = "swagwrap.calibration" // of the files that calibrate writes
	settingsVersion = 1
)

// Settings describe how to make an ensemble. They come from the flags of sample, or from a settings file that a study
// wrote.
type Settings struct {
	Method     string  `json:"method"`
	Scale      float64 `json:"scale"`          // α; 0 with SWA and Iterates
	Rank       int     `json:"rank,omitempty"` // columns of D; 0 for all
	Antithetic bool    `json:"antithetic,omitempty"`
	// Members is S. 0 stands for all there are: one per posterior with SWA, all checkpoints with Iterates.
	Members     int     `json:"members,omitempty"`
	Seed        uint64  `json:"seed"`
	Temperature float64 `json:"temperature,omitempty"` // temperature of the average; 0 for none
	Threshold   float64 `json:"threshold,omitempty"`   // threshold of the task binary; 0 for the usual one
	// NoiseStd is the standard deviation of a regression's noise, if the posterior does not have it.
	NoiseStd []float64 `json:"noise_std,omitempty"`
}

// FromSampling returns the settings for members that a sampler draws. Scale 0 gives SWA.
func FromSampling(how swag.SampleOptions, members int) *Settings {
	s := &Settings{Method: how.Covariance.String(), Scale: how.Scale, Rank: how.Rank, Antithetic: how.Antithetic, Members: members, Seed: how.Seed}
	if how.Scale == 0 {
		s = &Settings{Method: SWA, Seed: how.Seed}
	}
	return s
}

// Sampling returns how to draw the members.
func (s *Settings) Sampling() Sampling {
	out := Sampling{Seed: s.Seed, Scale: s.Scale, Covariance: s.Method, Rank: s.Rank, Antithetic: s.Antithetic}
	if s.Method == SWA {
		out.Covariance = swag.LowRankPlusDiagonal.String()
	}
	return out
}

// Draws reports whether a sampler draws the members at random.
func (s *Settings) Draws() bool { return s.Method == SWAG || s.Method == SWAGDiag }

// Check refuses settings that no ensemble can have.
func (s *Settings) Check() error {
	if err := word.Check(s.Method, Methods...); err != nil {
		return fmt.Errorf("method %w", err)
	}
	switch {
	case s.Members < 0 || s.Members >= swag.MaxMembers || s.Members == 0 && s.Draws():
		return fmt.Errorf("members: %d, want 1 to %d", s.Members, swag.MaxMembers-1)
	case !s.Draws() && s.Scale != 0:
		return fmt.Errorf("method %q: has no scale", s.Method)
	case !s.Draws() && s.Antithetic:
		return fmt.Errorf("method %q: has no pairs", s.Method)
	case s.Method != SWAG && s.Rank != 0:
		return fmt.Errorf("method %q: has no rank", s.Method)
	case s.Method == SWA && s.Members != 0:
		return fmt.Errorf("method %q: has one member of each posterior", s.Method)
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 1):
		return fmt.Errorf("temperature: %v, want a finite number above 0", s.Temperature)
	case !(s.Threshold >= 0 && s.Threshold <= 1):
		return fmt.Errorf("threshold: %v, want a number above 0 and at most 1", s.Threshold)
	}
	for _, std := range s.NoiseStd {
		if !(std > 0) || math.IsInf(std, 1) {
			return fmt.Errorf("noise_std: %v, want a finite number above 0", std)
		}
	}
	return nil
}

// DefaultMembers is the default for S. The paper uses the same number.
const DefaultMembers = 30

// MaxSettings is the largest size of a settings file, in bytes.
const MaxSettings = 1 << 20

// SettingsFile is the content of a settings file.
type SettingsFile struct {
	Kind          string `json:"kind"`
	FormatVersion int    `json:"format_version"`
	Producer      string `json:"producer"`
	Settings
	Posterior Reference `json:"posterior"` // the posterior that the settings were chosen for
	Chosen    any       `json:"chosen"`    // the data and the candidates of the choice, for the reader
}

// NewSettingsFile returns a SettingsFile. producer is the program and its version.
func NewSettingsFile(s Settings, posterior Reference, chosen any, producer string) *SettingsFile {
	return &SettingsFile{SettingsKind, settingsVersion, producer, s, posterior, chosen}
}

// ParseSettings parses and checks a settings file.
func ParseSettings(js []byte) (*SettingsFile, error) {
	var f SettingsFile
	if err := json.Unmarshal(js, &f); err != nil {
		return nil, err
	}
	if f.Kind != SettingsKind {
		return nil, fmt.Errorf("kind %q, want %q", f.Kind, SettingsKind)
	}
	if f.FormatVersion != settingsVersion {
		return nil, fmt.Errorf("format version %d, written by %q: this program reads version %d", f.FormatVersion, f.Producer, settingsVersion)
	}
	return &f, f.Check()
}
