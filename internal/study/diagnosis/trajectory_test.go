package diagnosis

import (
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/swag/trajectory"
)

func TestHealthLines(t *testing.T) {
	t.Parallel()
	h := trajectory.Health{Checkpoints: 30, Effective: 2.12, Drift: 0.499, Spread: 0.243, Step: 0.0012, Slowing: 1.15, Frozen: 0.004, SubUlp: 0.0015,
		Spectrum: []float64{0.68, 0.17, 0.1, 0.05, 0}, Dimensions: 2.07, LowRank: 1.3}
	want := `
trajectory                        value  good
independent checkpoints       2.1 of 30  10 and more; a random walk has about 2
variance between the halves        50 %  below 60 %; independent checkpoints have 3 %, a straight line 75 %
spread / size of the weights       24 %  0.2 % to 50 %
step / size of the weights       0.12 %
last steps / first steps           1.15  about 1: a constant learning rate
weights at rest                  0.55 %  0 %, if none was frozen
low-rank / diagonal variance       1.30  about 1
largest eigenvalue                 68 %  █▂▁▁  as concentrated as 2.1 equal ones`
	if got := strings.Join(healthLines(h), "\n"); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
	// Too few for halves and quarters, and no deviations.
	if got := healthLines(trajectory.Health{Checkpoints: 2, Effective: 2}); len(got) != 5 {
		t.Errorf("2 checkpoints: %q", got)
	}
}
