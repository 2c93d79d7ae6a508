package programs

import "testing"

// Folders of moments hold the checkpoints of one run. Folders of runs do not.
func TestMoments(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"epoch_7": true, "checkpoint-500": true, "epoch=3-step=60": true, "global_step120": true, "model_epoch_12": true, "CKPT+2026-01-02+03-04-10+00": true,
		"seed_1": false, "epochs100_lr0.1": false, "run2": false, "version_0": false, "checkpoints": false, "fold-3": false, "epochs100": false,
	} {
		if got := moments.MatchString(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
