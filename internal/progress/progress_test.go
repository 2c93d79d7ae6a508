package progress

import (
	"slices"
	"strings"
	"testing"
)

// The names are those that trainers and people write. Each list is in the order of training.
func TestSort(t *testing.T) {
	for _, tt := range []struct {
		names     string
		by, doubt string
	}{
		{"epoch=0.pt epoch=1.pt epoch=10.pt", "", ""},
		{"val_loss=0.83-epoch=0.pt val_loss=0.91-epoch=1.pt val_loss=0.42-epoch=10.pt", "epoch", ""},
		{"epoch=0-val_loss=0.83.ckpt epoch=1-val_loss=0.91.ckpt", "", ""},
		{"acc0.81-epoch1.pt acc0.79-epoch2.pt acc0.85-epoch10.pt", "epoch", ""},
		{"acc81-ep1.pt acc79-ep2.pt", "epoch", ""},
		{"loss-0.9_e-1.pt loss-0.5_e-2.pt loss-0.7_e-3.pt", "epoch", ""},
		{"f1=0.83_iter_500.pth f1=0.81_iter_1000.pth", "step", ""},
		{"acc1_81_global_step100 acc1_80_global_step200", "step", ""},
		{"val=0.9-iter=9500.pt val=0.8-iter=10k.pt val=0.7-iter=1M.pt", "step", ""},
		{"loss=0.9-step=1e3.pt loss=0.8-step=2e3.pt loss=0.7-step=1e4.pt", "step", ""},
		{"step_1e3.pt step_2e3.pt step_1e4.pt", "step", ""},
		{"iter_1.5e3.pt iter_5e3.pt iter_1e4.pt", "step", ""},
		{"ckpt_1e3.pt ckpt_2e3.pt ckpt_1e4.pt", "", "read as 10000"},
		{"ckpt_1e3.pt ckpt_1e4.pt ckpt_1e5.pt", "", ""},
		{"resnet18e4.pt resnet18e10.pt", "", ""},
		{"acc0.81-1.pt acc0.80-2.pt", "", "taken for no order"},
		{"0.81_7.pt 0.80_8.pt", "", "taken for no order"},
		{"val_loss=0.42.pt val_loss=0.83.pt", "", "only a metric"},
		{"epoch=0-step=100.ckpt epoch=1-step=200.ckpt epoch=1-step=250.ckpt", "", ""},
		{"l=0.9-epoch=1-step=500.ckpt l=0.8-epoch=2-step=100.ckpt", "epoch and step", ""},
		{"acc=0.9-epoch=1-global_step=500.ckpt acc=0.8-epoch=2-global_step=100.ckpt", "epoch and step", "contradict"},
		{"acc0.9-epochs100-step5.pt acc0.8-epochs100-step6.pt", "step", ""},
		{"epoch-1.pt epoch-2.pt final.pt", "", "final.pt has no number"},
		{"loss=0.9-epoch=3.ckpt loss=0.8-epoch=4.ckpt loss=0.7-epoch=5.ckpt loss=0.6-epoch=5-v1.ckpt", "epoch", "the same number"},
		{"seed1_epoch1.pt seed1_epoch2.pt seed2_epoch1.pt seed2_epoch2.pt", "", "many have the same number"},
		{"epoch3/run/checkpoint-100 epoch3/run/checkpoint-200", "", ""},
		{"acc0.9-epoch3/model.pt acc0.8-epoch4/model.pt", "epoch", ""},
		{"2024-01-02_12.pt 2024-01-03_11.pt", "", ""},
		{"a.onnx b.onnx c.onnx", "", ""},
		{"0.5.pt 1.5.pt", "", ""},
		{"swa.pt", "", ""},
	} {
		want := strings.Fields(tt.names)
		given := slices.Clone(want)
		slices.Reverse(given)
		got := Sort(given)
		if !slices.Equal(got.Paths, want) || got.By != tt.by || (tt.doubt == "") != (got.Doubt == "") || !strings.Contains(got.Doubt, tt.doubt) {
			t.Errorf("%s: %q, want by %q, doubt %q", tt.names, got, tt.by, tt.doubt)
		}
	}
	if got := Sort(nil); got.Paths != nil {
		t.Errorf("no names: %v", got)
	}
}
