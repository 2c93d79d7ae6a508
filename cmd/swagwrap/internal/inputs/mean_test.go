package inputs

import "testing"

// The average is found in files of usual training programs.
func TestAverageKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys []string
		want string
	}{
		{stateDicts("../../../../weights/torch/testdata/script.pt.tar"), "state_dict_ema"}, // as timm writes it
		{stateDicts("../../../../weights/torch/testdata/averaged.pt"), ""},                 // AveragedModel.state_dict()
		{[]string{"state_dict", "current_model_state"}, "state_dict"},                      // Lightning
		{[]string{"model", "swa_model"}, "swa_model"},
		{[]string{"net", "model_averaged"}, "model_averaged"},
		{[]string{"ema", "swa", "model"}, "model"}, // nothing tells which
		{nil, "model"},
	} {
		if got := averageKey(c.keys, "model"); got != c.want {
			t.Errorf("%q: %q, want %q", c.keys, got, c.want)
		}
	}
}
