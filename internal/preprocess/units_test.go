package preprocess

import (
	"math"
	"strings"
	"testing"
)

// A mean above 1 is for pixels from 0 to 255. Values that fit neither units are refused, and those of other data are left.
func TestInUnits(t *testing.T) {
	for spec, want := range map[string]string{
		"mean=0.485,0.456,0.406 std=0.229,0.224,0.225": "1", "mean=0.5 std=0.5": "1", "mean=0 std=1": "1", "none": "1", "mean=0.1307": "1", "mean=1 std=1": "1",
		"std=0.25": "1", "std=2": "1", "mean=-1 std=2": "1", "mean=-4.2677393 std=9.1379948": "1", "mean=0.5 std=0.0039": "1",
		"mean=123.675,116.28,103.53 std=58.395,57.12,57.375": "255", "mean=127.5 std=127.5": "255", "mean=0 std=255": "255", "std=255": "255",
		"mean=103.53,116.28,123.675 std=1": "255", "mean=0,116,103 std=58": "255", "mean=255 std=1": "255", "mean=33.318 std=78.567": "255",
		"mean=127.5": "no standard deviation", "mean=0.5 std=127.5": "the mean is for pixels from 0 to 1", "mean=123.675,116.28,103.53 std=0.229,0.224,0.225": "the standard deviation is not",
		"mean=0.485,116.28,103.53 std=58": "some values of the mean", "mean=300 std=50": "at most", "mean=1.5 std=0.5": "the standard deviation is not",
	} {
		s, err := Settings{}.With(spec)
		if err != nil {
			t.Fatal(err)
		}
		got, note, err := s.InUnits()
		norm, normErr := s.Normalizer([]int64{3, 2, 2}, true)
		if (err == nil) != (normErr == nil) {
			t.Errorf("%s: %v, and the normalizer %v", spec, err, normErr)
		}
		switch {
		case err != nil:
			if !strings.Contains(err.Error(), want) || !strings.Contains(err.(*UnitsError).Hint(), "std=1") {
				t.Errorf("%s: %v, want %s", spec, err, want)
			}
			continue
		case got.Levels() != (want == "255") || (note != "") != got.Levels():
			t.Errorf("%s: %+v, note %q, want units to %s", spec, got, note, want)
		}
		// The arithmetic: (p·scale − mean)/std in float32.
		mean, std := got.perChannel(s.Mean, 0), got.perChannel(s.Std, 1)
		unit := 255.0
		if want == "255" {
			unit = 1
		}
		norm2, _ := got.Normalizer([]int64{3, 2, 2}, true)
		values, same := make([]float32, 12), make([]float32, 12)
		pixels := []byte{0, 1, 2, 127, 128, 200, 254, 255, 3, 4, 5, 6}
		norm.Bytes(values, pixels)
		norm2.Bytes(same, pixels)
		for i, p := range pixels {
			if exact := (float64(p)/unit - mean[i/4]) / std[i/4]; math.Abs(float64(values[i])-exact) > 1e-4*(1+math.Abs(exact)) || values[i] != same[i] {
				t.Errorf("%s: pixel %d becomes %v, want %v", spec, p, values[i], exact)
			}
		}
	}
}

// A configuration that multiplies pixels and has a mean of other pixels is no configuration that was trained with.
func TestConfigUnits(t *testing.T) {
	const head = `{"image_processor_type": "ViTImageProcessor", "do_resize": false, `
	for js, want := range map[string]string{
		`"do_rescale": true, "image_mean": [123.675, 116.28, 103.53], "image_std": [58.395, 57.12, 57.375]}`:                      "pixels are multiplied by 0.003922",
		`"do_rescale": false, "image_mean": [123.675, 116.28, 103.53], "image_std": [58.395, 57.12, 57.375]}`:                     "",
		`"do_rescale": true, "rescale_factor": 0.00784313725490196, "image_mean": [1.0, 1.0, 1.0], "image_std": [1.0, 1.0, 1.0]}`: "",
	} {
		s, err := parse([]byte(head + js))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %+v, %v, want %q", js, s, err, want)
		}
	}
}

// A later mean is not for the units of an earlier one.
func TestUnitsOfLaterMean(t *testing.T) {
	first, err := Settings{}.With("mean=127.5 std=127.5")
	if err == nil {
		first, _, err = first.InUnits()
	}
	if err != nil || first.Scale != 1 {
		t.Fatal(first, err)
	}
	for spec, want := range map[string]float64{"mean=0.5 std=0.5": 0, "mean=100 std=50": 1, "input-size=32": 1} {
		s, err := first.With(spec)
		if err == nil {
			s, _, err = s.InUnits()
		}
		if err != nil || s.Scale != want {
			t.Errorf("%s: scale %v, %v, want %v", spec, s.Scale, err, want)
		}
	}
}

func TestReversed(t *testing.T) {
	for spec, want := range map[string]bool{
		"mean=103.53,116.28,123.675 std=1": true, "mean=103.939,116.779,123.68 std=1": true, "mean=0.406,0.456,0.485 std=0.225,0.224,0.229": true,
		"imagenet": false, "clip": false, "inception": false, "mean=0.5": false, "mean=123.675,116.28,103.53 std=58.395": false,
	} {
		s, err := Settings{}.With(spec)
		if err != nil || s.Reversed() != want {
			t.Errorf("%s: %v, %v", spec, s.Reversed(), err)
		}
	}
}

// The labels of masks are reduced where the configuration says so.
func TestReduceLabels(t *testing.T) {
	const beit = `{"image_processor_type": "BeitImageProcessor", "do_resize": false, "do_center_crop": false, `
	for js, want := range map[string]bool{beit + `"do_reduce_labels": true}`: true, beit + `"reduce_labels": true}`: true, beit + `"do_reduce_labels": false}`: false, beit + `"do_normalize": false}`: false} {
		s, err := parse([]byte(js))
		if err != nil || s.ReduceLabels != want {
			t.Errorf("%s: %v, %v", js, s.ReduceLabels, err)
		}
		if s, err = s.Resolve([]int64{3, 8, 8}); err != nil {
			t.Fatal(err)
		}
		back, style, err := s.Config()
		if read, readErr := parse(back); err != nil || readErr != nil || read.ReduceLabels != want || style != HuggingFace {
			t.Errorf("%s: written as %s (%s), %v %v", js, back, style, err, readErr)
		}
	}
}
