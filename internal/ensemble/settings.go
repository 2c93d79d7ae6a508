package ensemble

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/swag"
)

// The methods of [Settings] have the names that sample's --method takes.
const (
	SWAG     = "swag"
	SWAGDiag = "swag-diag"
	SWA      = "swa"      // θ_SWA alone
	Last     = "last"     // the last checkpoint, with its own batch-norm statistics
	Iterates = "iterates" // the checkpoints, each with its own batch-norm statistics
)

// Scales are those among which validation data choose the scale of SWAG: factors α of the covariance α(Σ_diag + D̂D̂ᵀ/(K−1)). The
// paper's is ½.
var Scales = []float64{0.25, 0.5, 1, 2}

// Methods lists all methods.
var Methods = []string{SWAG, SWAGDiag, SWA, Last, Iterates}

// Kind and version of a settings file; see docs/formats.md.
const (
	SettingsKind    = "swagwrap.settings"
	CalibrationKind = "swagwrap.calibration" // of the files that calibrate writes
	settingsVersion = 1
)

// Draw says how members are made: by a sampler, or by taking the checkpoints.
type Draw struct {
	Seed  uint64  `json:"seed"`
	Scale float64 `json:"scale"` // α; 0 with SWA and checkpoints
	// "swag", "swag-diag" or "isotropic"; [Iterates] where checkpoints are the members, in settings also [Last]
	Covariance string `json:"covariance"`
	Rank       int    `json:"rank"`                 // columns of D in use; 0 for all
	Antithetic bool   `json:"antithetic"`           // members are drawn in pairs about the mean
	Orthogonal bool   `json:"orthogonal,omitempty"` // at right angles: see [swag.SampleOptions]
}

// DrawOf returns the draw of a sampler.
func DrawOf(how swag.SampleOptions) Draw {
	return Draw{how.Seed, how.Scale, how.Covariance.String(), how.Rank, how.Antithetic, how.Orthogonal}
}

// Options returns the options for a sampler. It fails if the members are checkpoints, which no sampler makes.
func (d Draw) Options() (swag.SampleOptions, error) {
	c, err := swag.ParseCovariance(d.Covariance)
	return swag.SampleOptions{
		Seed:       d.Seed,
		Scale:      d.Scale,
		Covariance: c,
		Rank:       d.Rank,
		Antithetic: d.Antithetic,
		Orthogonal: d.Orthogonal,
	}, err
}

// Settings describe how to make an ensemble. They come from a user, or from a settings file that a study wrote.
type Settings struct {
	Draw
	// Members is S. 0 stands for all there are: one per posterior with SWA and Last, all checkpoints with Iterates.
	Members     int
	Temperature float64 // temperature of the average; 0 for none
	Threshold   float64 // threshold of the task binary; 0 for the usual one
	// NoiseStd is the standard deviation of a regression's noise, if the posterior does not have it.
	NoiseStd []float64
}

// FromSampling returns the settings for members that a sampler draws. Scale 0 gives SWA.
func FromSampling(how swag.SampleOptions, members int) *Settings {
	if how.Scale == 0 {
		return &Settings{Draw: DrawOf(swag.SampleOptions{Seed: how.Seed})}
	}
	return &Settings{Draw: DrawOf(how), Members: members}
}

// FromCheckpoints returns the settings for all checkpoints, and FromLast for the last one of each posterior.
func FromCheckpoints() *Settings { return &Settings{Draw: Draw{Seed: 1, Covariance: Iterates}} }
func FromLast() *Settings        { return &Settings{Draw: Draw{Seed: 1, Covariance: Last}} }

// Checkpoints reports whether the members are checkpoints. They bring their own batch-norm statistics.
func (s *Settings) Checkpoints() bool { return s.Covariance == Iterates || s.Covariance == Last }

// Stored returns the draw as the file of an ensemble has it. The file lists the checkpoints, so it needs no word for the last.
func (d Draw) Stored() Draw {
	if d.Covariance == Last {
		d.Covariance = Iterates
	}
	return d
}

// Method returns the method that makes the members.
func (s *Settings) Method() string {
	if !s.Checkpoints() && s.Scale == 0 && s.Members == 0 {
		return SWA
	}
	return s.Covariance
}

// Check refuses settings that no ensemble can have.
func (s *Settings) Check() error { return s.Form().check() }

// SettingsForm is the form of settings in files and JSON.
type SettingsForm struct {
	Method      string    `json:"method"`
	Scale       float64   `json:"scale"`
	Rank        int       `json:"rank,omitempty"`
	Antithetic  bool      `json:"antithetic,omitempty"`
	Orthogonal  bool      `json:"orthogonal,omitempty"`
	Members     int       `json:"members,omitempty"`
	Seed        uint64    `json:"seed"`
	Temperature float64   `json:"temperature,omitempty"`
	Threshold   float64   `json:"threshold,omitempty"`
	NoiseStd    []float64 `json:"noise_std,omitempty"`
}

// Form returns the settings as files have them.
func (s *Settings) Form() SettingsForm {
	return SettingsForm{s.Method(), s.Scale, s.Rank, s.Antithetic, s.Orthogonal, s.Members, s.Seed, s.Temperature, s.Threshold, s.NoiseStd}
}

// Settings is the inverse of [Settings.Form].
func (f SettingsForm) Settings() Settings {
	s := Settings{Draw{f.Seed, f.Scale, f.Method, f.Rank, f.Antithetic, f.Orthogonal}, f.Members, f.Temperature, f.Threshold, f.NoiseStd}
	if f.Method == SWA {
		s.Covariance = SWAG
	}
	return s
}

// Like reports whether other settings make the same members with the same temperature, which may be rounded.
func (s *Settings) Like(other Settings) bool {
	a, b := s.Form(), other.Form()
	near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-4*math.Abs(y) }
	if !near(a.Temperature, b.Temperature) {
		return false
	}
	if a.Members == 0 && a.Method != SWAG && a.Method != SWAGDiag || a.Method == SWA { // no draws
		a.Seed, b.Seed = 0, 0
	}
	return a.Method == b.Method && a.Scale == b.Scale && a.Rank == b.Rank && a.Antithetic == b.Antithetic && a.Orthogonal == b.Orthogonal &&
		a.Members == b.Members && a.Seed == b.Seed && slices.EqualFunc(a.NoiseStd, b.NoiseStd, near)
}

// String describes the settings for messages.
func (s Settings) String() string {
	what := s.Method()
	if s.Members > 0 {
		what += fmt.Sprintf(" with %d members, scale %g, seed %d", s.Members, s.Scale, s.Seed)
		switch {
		case s.Orthogonal:
			what += ", orthogonal pairs"
		case s.Antithetic:
			what += ", antithetic pairs"
		}
	}
	if s.Temperature > 0 {
		what += fmt.Sprintf(", temperature %g", s.Temperature)
	}
	return what
}

// check refuses what no ensemble can have.
func (f SettingsForm) check() error {
	if err := word.Check(f.Method, Methods...); err != nil {
		return fmt.Errorf("method %w", err)
	}
	draws := f.Method == SWAG || f.Method == SWAGDiag
	switch {
	case f.Members < 0 || f.Members >= swag.MaxMembers || f.Members == 0 && draws:
		return fmt.Errorf("members: %d, want 1 to %d", f.Members, swag.MaxMembers-1)
	case !draws && f.Scale != 0:
		return fmt.Errorf("method %q: has no scale", f.Method)
	case !draws && f.Antithetic:
		return fmt.Errorf("method %q: has no pairs", f.Method)
	case f.Orthogonal && !f.Antithetic:
		return errors.New("orthogonal: the members are not antithetic")
	case f.Method != SWAG && f.Rank != 0:
		return fmt.Errorf("method %q: has no rank", f.Method)
	case (f.Method == SWA || f.Method == Last) && f.Members != 0:
		return fmt.Errorf("method %q: has one member of each posterior", f.Method)
	case !(f.Temperature >= 0) || math.IsInf(f.Temperature, 1):
		return fmt.Errorf("temperature: %v, want a finite number above 0", f.Temperature)
	case !(f.Threshold >= 0 && f.Threshold <= 1):
		return fmt.Errorf("threshold: %v, want a number above 0 and at most 1", f.Threshold)
	}
	for _, std := range f.NoiseStd {
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
	Producer string // the program and its version
	Settings
	Posterior Reference // the posterior that the settings were chosen for
	Chosen    any       // the data and the candidates of the choice, for the reader
}

// fileForm is the form of the file.
type fileForm struct {
	Kind          string `json:"kind"`
	FormatVersion int    `json:"format_version"`
	Producer      string `json:"producer"`
	SettingsForm
	Posterior Reference `json:"posterior"`
	Chosen    any       `json:"chosen"`
}

// MarshalJSON returns the content of the file.
func (f *SettingsFile) MarshalJSON() ([]byte, error) {
	return json.Marshal(fileForm{SettingsKind, settingsVersion, f.Producer, f.Form(), f.Posterior, f.Chosen})
}

// ParseSettings parses and checks a settings file.
func ParseSettings(js []byte) (*SettingsFile, error) {
	var f fileForm
	if err := json.Unmarshal(js, &f); err != nil {
		return nil, err
	}
	if f.Kind != SettingsKind {
		return nil, fmt.Errorf("kind %q, want %q", f.Kind, SettingsKind)
	}
	if f.FormatVersion != settingsVersion {
		return nil, fmt.Errorf("format version %d, written by %q: this program reads version %d", f.FormatVersion, f.Producer,
			settingsVersion)
	}
	return &SettingsFile{f.Producer, f.Settings(), f.Posterior, f.Chosen}, f.check()
}
