package open

import (
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
)

// A constant of the checkpoints must be the same in the mean.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	var models []*onnxio.Model
	for _, name := range []string{"ckpt-1.onnx", "ckpt-2.onnx"} {
		m, err := onnxio.Open("../../cmd/swagwrap/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		models = append(models, m)
	}
	set, err := checkpoints.New(models)
	if err != nil {
		t.Fatal(err)
	}
	w, _ := set.Layout.Find("conv.weight")
	if err := unchanged(w, set.Models[0], set.Models[0]); err != nil {
		t.Error(err)
	}
	if err := unchanged(w, set.Models[0], set.Models[1]); err == nil || !strings.Contains(err.Error(), `ckpt-1.onnx: tensor "conv.weight": differs from that of the checkpoints`) {
		t.Error(err)
	}
}

// The average is found in files of usual training programs.
func TestAverageKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys         []string
		marked, want string
	}{
		{keysOf("../../weights/statefile/testdata/script.pt.tar"), "", "state_dict_ema"},  // as timm writes it
		{keysOf("../../weights/statefile/testdata/averaged.pt"), "", ""},                  // AveragedModel.state_dict()
		{[]string{"state_dict", "current_model_state"}, "state_dict", "state_dict"},   // Lightning
		{[]string{"state_dict", "ema_state_dict"}, "state_dict", "state_dict"},        // MMEngine
		{[]string{"online_model", "ema_model"}, "", "ema_model"},                      // ema-pytorch
		{[]string{"model", "ema/online_model", "ema/ema_model"}, "", "ema/ema_model"}, // the same beside the network
		{[]string{"model", "swa_model"}, "", "swa_model"},
		{[]string{"net", "model_averaged"}, "", "model_averaged"},
		{[]string{"ema", "swa", "model"}, "", "model"}, // nothing tells which
		{nil, "", "model"},
	} {
		if got := averageKey(c.keys, c.marked, "model"); got != c.want {
			t.Errorf("%q: %q, want %q", c.keys, got, c.want)
		}
	}
}

func keysOf(path string) []string {
	keys, _ := stateDicts(path)
	return keys
}
