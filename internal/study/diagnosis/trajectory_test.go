package diagnosis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
)

// memory is an io.WriterAt in memory.
type memory []byte

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if grow := int(off) + len(p) - len(*m); grow > 0 {
		*m = append(*m, make([]byte, grow)...)
	}
	return copy((*m)[off:], p), nil
}

// posterior fits n checkpoints of d weights, which are value(checkpoint, weight).
func posterior(t *testing.T, n, d int, value func(t, i int) float64) *swag.Posterior {
	t.Helper()
	l, err := weights.NewLayout([]weights.Tensor{{Name: "w", Shape: []int64{int64(d)}, DType: weights.F32, Role: weights.Parameter}})
	if err != nil {
		t.Fatal(err)
	}
	in := swag.Input{Layout: l}
	for c := range n {
		theta := make(weights.Slice, d)
		for i := range theta {
			theta[i] = float32(value(c, i))
		}
		in.Checkpoints = append(in.Checkpoints, swag.Checkpoint{Path: fmt.Sprintf("run/epoch-%d.onnx", c+1), SHA256: fmt.Sprint(c), Theta: theta})
	}
	var file memory
	if err := swag.Fit(t.Context(), &file, in, swag.FitOptions{Health: trajectory.Describe}); err != nil {
		t.Fatal(err)
	}
	p, err := swag.Parse("p.safetensors", file)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTrajectory(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(_, _ int) float64 { return 1 + 0.1*r.NormFloat64() }
	var walk [200]float64
	steps := func(_, i int) float64 {
		walk[i] += r.NormFloat64()
		return 10 + walk[i]
	}
	for _, c := range []struct {
		name      string
		posterior *swag.Posterior
		want      []string // in the table, once each
		verdict   string   // how the lines behind the table begin
	}{
		// √(29/30) of 0.1, against a size of √1.01.
		{"noise", posterior(t, 30, 200, noise), []string{"of 30 10 and more", "spread / size of the weights 9.8 %", "weights at rest 0 %"},
			"note: the checkpoints are equally far from one another, in any order: "},
		// The halves of 10 … 19 have the means 12 and 17: 2.5² of the variance, 8.25. The
		// size is √(14.5² + 8.25), and each step 1. The other weight is always 0.
		{"line", posterior(t, 10, 2, func(t, i int) float64 { return float64((10 + t) * (1 - i)) }), []string{"variance between the halves 76 %", "spread / size of the weights 19 %", "step / size of the weights 6.8 %", "weights at rest 50 %"},
			"warning: the weights still drift: 76 % of their variance lies between the two halves: the mean lies behind"},
		{"far apart", posterior(t, 30, 200, func(_, _ int) float64 { return r.NormFloat64() }), nil, "warning: the checkpoints have little in common: "},
		{"walk", posterior(t, 30, 200, steps), nil, "note: the 30 checkpoints tell as much as "},
		{"correlated", posterior(t, 30, 200, func(t, i int) float64 { return 3 + math.Cos(float64(t)/2+float64(i)) }), nil, "nothing speaks against this posterior"},
		{"stray", posterior(t, 30, 200, func(t, i int) float64 {
			if t == 7 {
				return 9
			}
			return noise(t, i)
		}), nil, "warning: epoch-8.onnx stands apart from the others, "},
	} {
		lines, err := Trajectory(c.posterior, report.Screen{Verbose: true})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		rows := len(healthLines(healthOf(t, c.posterior), report.Screen{Verbose: true}))
		table, verdict := plain(lines[:rows]), plain(lines[rows:])
		for _, want := range c.want {
			if strings.Count(table, want) != 1 {
				t.Errorf("%s: no %q in %s", c.name, want, table)
			}
		}
		if !strings.HasPrefix(verdict, c.verdict) {
			t.Errorf("%s: %q, want %q", c.name, verdict, c.verdict)
		}
	}

	damaged := posterior(t, 3, 2, noise)
	damaged.Health = []byte("{")
	if lines, err := Trajectory(damaged, report.Screen{}); err == nil || !strings.HasPrefix(err.Error(), "p.safetensors: health of the trajectory: ") {
		t.Errorf("damaged: %q, %v", lines, err)
	}
}

// plain is the words of lines, however they are aligned and broken.
func plain(lines []string) string { return strings.Join(strings.Fields(strings.Join(lines, " ")), " ") }

func healthOf(t *testing.T, p *swag.Posterior) trajectory.Health {
	t.Helper()
	h, err := trajectory.Check(p)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHealthLines(t *testing.T) {
	t.Parallel()
	h := trajectory.Health{Checkpoints: 30, Effective: 2.12, Drift: 0.499, Spread: 0.243, Step: 0.0012, Slowing: 1.15, Frozen: 0.004, SubUlp: 0.0015,
		Spectrum: []float64{0.68, 0.17, 0.1, 0.05, 0}, Dimensions: 2.07, LowRank: 1.3}
	want := `
trajectory                        value  good
independent checkpoints       2.1 of 30  10 and more for SWAG; about 2 is common, and enough for SWA
variance between the halves        50 %  below 60 %; independent checkpoints have 3 %, a straight line 75 %
spread / size of the weights       24 %  0.2 % to 33 %
step / size of the weights       0.12 %
last steps / first steps           1.15  about 1: a constant learning rate
weights at rest                  0.55 %  0 %, if none was frozen
low-rank / diagonal variance       1.30  about 1
largest eigenvalue                 68 %  █▂▁▁  as concentrated as 2.1 equal ones`
	if got := strings.Join(healthLines(h, report.Screen{Verbose: true}), "\n"); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("got\n%s\nwant%s", got, want)
	}
	// Too few for halves and quarters, and no deviations.
	if got := healthLines(trajectory.Health{Checkpoints: 2, Effective: 2}, report.Screen{Verbose: true}); len(got) != 5 {
		t.Errorf("2 checkpoints: %q", got)
	}
}
