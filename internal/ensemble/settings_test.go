package ensemble_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/swag"
)

// A file of settings is read as it was written.
func TestSettings(t *testing.T) {
	for _, s := range []*ensemble.Settings{
		ensemble.FromSampling(swag.SampleOptions{Seed: 1, Scale: 0.5}, 30),
		ensemble.FromSampling(swag.SampleOptions{Seed: math.MaxUint64, Scale: 0.125, Rank: 5, Antithetic: true}, 4),
		ensemble.FromSampling(swag.SampleOptions{Seed: 1, Scale: 0.5, Antithetic: true, Orthogonal: true}, 30),
		ensemble.FromSampling(swag.SampleOptions{Seed: 1, Scale: 1, Covariance: swag.Diagonal}, 30),
		ensemble.FromSampling(swag.SampleOptions{Seed: 1}, 30),
		{Draw: ensemble.Draw{Seed: 1, Covariance: ensemble.Iterates}, Members: 2, Temperature: 1.5973419992094489},
	} {
		js, err := json.Marshal(&ensemble.SettingsFile{Settings: *s, Posterior: ensemble.Reference{Path: "p", ID: "00"}, Producer: "test"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := ensemble.ParseSettings(js)
		if err != nil || !reflect.DeepEqual(&got.Settings, s) || got.Posterior.ID != "00" {
			t.Errorf("%s: %+v, %v", js, got, err)
		}
	}
	head := `{"kind": "swagwrap.settings", "format_version": 1, `
	for js, want := range map[string]string{
		`{`:                                "unexpected end",
		`{"kind": "swagwrap.calibration"}`: `kind "swagwrap.calibration", want "swagwrap.settings"`,
		`{"kind": "swagwrap.settings", "format_version": 2, "producer": "later"}`: `format version 2, written by "later"`,
		head + `"method": "best"}`:                                                    `method "best": want one of swag, swag-diag, swa, last or iterates`,
		head + `"method": "swag", "scale": 1}`:                                        "members: 0, want 1 to",
		head + `"method": "swag", "scale": 1, "members": -1}`:                         "members: -1",
		head + `"method": "swa", "scale": 1}`:                                         `method "swa": has no scale`,
		head + `"method": "swag-diag", "scale": 1, "rank": 2, "members": 2}`:          `method "swag-diag": has no rank`,
		head + `"method": "iterates", "antithetic": true}`:                            `method "iterates": has no pairs`,
		head + `"method": "swa", "temperature": -1}`:                                  "temperature: -1",
		head + `"method": "swag", "scale": 1, "members": 2, "temperature": "higher"}`: "cannot unmarshal",
	} {
		_, err := ensemble.ParseSettings([]byte(js))
		infertest.WantError(t, err, want)
	}
}

// Settings of any content are refused, or can be used.
func FuzzSettings(f *testing.F) {
	f.Add(`{"kind":"swagwrap.settings","format_version":1,"producer":"x","method":"swag","scale":0.5,"members":30,"seed":1,"noise_std":[0.5],"posterior":{"path":"p","id":"0"},"chosen":{}}`)
	f.Fuzz(func(t *testing.T, js string) {
		var s *ensemble.SettingsFile
		var err error
		reliability.Heap(t, len(js), func() { s, err = ensemble.ParseSettings([]byte(js)) })
		if err != nil {
			return
		}
		if s.Check() != nil {
			t.Errorf("%q: accepted, and cannot be used", js)
		}
	})
}
