package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// Figures are those of compare --json.
type Figures struct {
	path       string
	Examples   int      `json:"examples"`
	Validation int      `json:"validation_examples"`
	Test       string   `json:"test"`
	IDs        []string `json:"posterior_ids"`
	Warnings   []string `json:"warnings"`
	Against    []struct {
		Text string `json:"text"`
	} `json:"against"`
	Methods []map[string]json.RawMessage `json:"methods"`
}

// maxFigures is more than a comparison prints.
const maxFigures = 256 << 20

// ReadFigures reads what compare --json printed.
func ReadFigures(path string) (*Figures, error) {
	js, err := file.Read(path, maxFigures)
	if err != nil {
		return nil, err
	}
	f := &Figures{path: path}
	if err := json.Unmarshal(js, f); err != nil || len(f.Methods) == 0 || f.Examples < 1 {
		return nil, fmt.Errorf("%s: want what %s prints", path, setting.Compare.With(setting.JSON.String()))
	}
	if len(f.IDs) == 0 {
		return nil, fmt.Errorf("%s: does not say which posteriors it is of: an older version wrote it", path)
	}
	return f, nil
}

// Measured are the figures of one method.
type Measured struct {
	Data                 string
	Examples, Validation int
	Method               string
	Metrics              []Metric
	Limits               []string
}

// A Metric is a figure with its interval, which may be nil.
type Metric struct {
	Type, Name string
	Value      float64
	Interval   *Interval
}

// Interval is a 95 % interval.
type Interval struct{ Low, High float64 }

// Stored are figures as the metadata of a model has them, in JSON.
type Stored struct {
	Method   string         `json:"method"`
	Data     string         `json:"data"`
	Examples int            `json:"examples"`
	Figures  []StoredFigure `json:"figures"`
}

// StoredFigure is a figure with the bounds of its 95 % interval, which may be nil.
type StoredFigure struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// Metadata returns the figures as JSON, for the metadata of a model.
func (m *Measured) Metadata() (string, error) {
	s := Stored{Method: m.Method, Data: m.Data, Examples: m.Examples}
	for _, x := range m.Metrics {
		f := StoredFigure{Name: x.Type, Value: x.Value}
		if x.Interval != nil {
			f.Low, f.High = &x.Interval.Low, &x.Interval.High
		}
		s.Figures = append(s.Figures, f)
	}
	js, err := json.Marshal(s)
	return string(js), err
}

// String returns the figures in a line.
func (s *Stored) String() string {
	var list []string
	for _, f := range s.Figures {
		list = append(list, fmt.Sprintf("%s %.4g", f.Name, f.Value))
	}
	return fmt.Sprintf("%s on %d examples of %s (%s)", strings.Join(list, ", "), s.Examples, s.Data, s.Method)
}

// shown are the figures that a card shows, in this order, with the names that the Hub uses for them.
var shown = []Metric{{Type: "accuracy", Name: "accuracy"}, {Type: "nll", Name: "negative log-likelihood"},
	{Type: "ece", Name: "expected calibration error"}, {Type: "brier", Name: "Brier score"},
	{Type: "auroc", Name: "AUROC"}, {Type: "rmse", Name: "root mean squared error"}, {Type: "crps", Name: "CRPS"},
	{Type: "perplexity", Name: "perplexity"}, {Type: "miou", Name: "mean IoU"}}

// ErrOther is returned for figures of something else than what is exported.
var ErrOther = errors.New("has no figures of what is exported")

// A Calibration is one with several numbers, by its method and the norm of its numbers.
type Calibration struct {
	Method string  `json:"method"`
	Norm   float64 `json:"norm"`
}

func (c *Calibration) like(other *Calibration) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.Method == other.Method && math.Abs(c.Norm-other.Norm) <= 1e-4*c.Norm
}

// Find returns the figures of the members that the settings make of posteriors with these IDs. The settings have the temperature, and by
// is another calibration, or nil. stale says that batch-norm statistics do not belong to the weights.
func (f *Figures) Find(ids []string, how *ensemble.Settings, by *Calibration, stale bool) (*Measured, error) {
	if !slices.Equal(f.IDs, ids) {
		return nil, fmt.Errorf("%s: %w: it is of another posterior", f.path, ErrOther)
	}
	var near []string
	for _, m := range f.Methods {
		var s ensemble.SettingsForm
		if m["settings"] == nil || string(m["settings"]) == "null" || json.Unmarshal(m["settings"], &s) != nil {
			continue
		}
		var c *Calibration
		json.Unmarshal(m["calibration"], &c) // older files have none
		if !how.Like(s.Settings()) || !by.like(c) {
			is := s.Settings().String()
			if c != nil {
				is += ", " + c.Method
			}
			near = append(near, is)
			continue
		}
		if was := string(m["stale_bn"]) == "true"; was != stale {
			return nil, fmt.Errorf("%s: %w: the batch-norm statistics are recomputed in one and kept in the other", f.path, ErrOther)
		}
		return f.measured(m), nil
	}
	want := how.String()
	if by != nil {
		want += ", " + by.Method
	}
	return nil, fmt.Errorf("%s: %w: want %s, have %s", f.path, ErrOther, want, strings.Join(near, "; "))
}

func (f *Figures) measured(m map[string]json.RawMessage) *Measured {
	got := &Measured{Data: filepath.Base(f.Test), Examples: f.Examples, Validation: f.Validation}
	json.Unmarshal(m["method"], &got.Method)
	var intervals map[string]Interval
	json.Unmarshal(m["intervals"], &intervals) // a method without them keeps its figures
	for _, x := range shown {
		var v *float64
		if json.Unmarshal(m[x.Type], &v) != nil || v == nil || math.IsNaN(*v) {
			continue
		}
		x.Value = *v
		if i, ok := intervals[x.Type]; ok {
			x.Interval = &i
		}
		got.Metrics = append(got.Metrics, x)
	}
	got.Limits = slices.Clone(f.Warnings)
	for _, a := range f.Against {
		got.Limits = append(got.Limits, "nothing is recommended: "+a.Text)
	}
	var warnings []string
	json.Unmarshal(m["warnings"], &warnings)
	got.Limits = append(got.Limits, warnings...)
	return got
}
