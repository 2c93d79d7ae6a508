package baseline_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/task"
)

// memberTemp is Σ_m p_m^(1/T) / Σ_c p_mc^(1/T) / S by powers of probabilities, n×10.
func memberTemp(members [][]float64, temperature float64) []float64 {
	out := make([]float64, len(members[0]))
	for _, p := range members {
		for i := 0; i < len(p); i += 10 {
			norm := 0.0
			for _, v := range p[i:][:10] {
				norm += math.Pow(v, 1/temperature)
			}
			for c, v := range p[i:][:10] {
				out[i+c] += math.Pow(v, 1/temperature) / norm / float64(len(members))
			}
		}
	}
	return out
}

// SWAG-MemberTemp averages the powers of SWAG's own members. Its temperature is the one at which a bisection of the
// slope of their NLL ends, and that of SWAG-Temp for a single member.
func TestSWAGMemberTemp(t *testing.T) {
	t.Parallel()
	val := dataset.Subset(infertest.Digits(t, "val.npz"), dataset.Order{Limit: 300})
	test := dataset.Subset(infertest.Digits(t, "test.npz"), dataset.Order{Limit: 200})
	in := &baseline.Inputs{Runs: []baseline.Run{{Network: infertest.Network(t, infertest.Posterior(t))}}, Seed: 1, Scale: 0.5, Members: 3,
		BatchNorm: batchnorm.Training{Data: infertest.Digits(t, "train.npz"), Order: dataset.Order{Limit: 256}},
		Asked:     []string{baseline.SWAG, "swag-member-temp"}}
	targets := baseline.Targets{Data: []dataset.Dataset{test}, Validation: val, FitsAll: true, Noise: true}
	methods, notes := predicted(t, infertest.Run(t), in, targets)
	if len(methods) != 2 || notes != nil {
		t.Fatalf("%d methods, notes %q", len(methods), notes)
	}
	swag, p := methods[0], methods[1]
	var members [2][][]float64 // by data set
	for _, g := range swag.Groups {
		for i := range members {
			members[i] = append(members[i], baseline.Average(i, g))
		}
	}
	nll := func(temperature float64) (sum float64) {
		for i, p := range memberTemp(members[1], temperature) {
			if i%10 == val.Labels().Classes[i/10] {
				sum -= math.Log(p)
			}
		}
		return sum / 300
	}
	low, high := 1.0, 4.0 // the NLL decreases at 1 and increases at 4
	for range 40 {
		middle := (low + high) / 2
		if nll(middle+1e-4) < nll(middle-1e-4) {
			low = middle
		} else {
			high = middle
		}
	}
	var got float64
	if _, err := fmt.Sscanf(p.Name, "SWAG-MemberTemp (T = %f)", &got); err != nil || math.Abs(got-low) > 0.005+1e-4*low {
		t.Errorf("%s, and the bisection finds T = %v", p.Name, low)
	}
	// A relative error of T of 1e-4 changes a probability p by at most 1e-4·p·(1−p)·ln(1/p) < 3e-5.
	for i, have := range [][]float64{p.Data[0].Mean(), p.Validation.Mean()} {
		for k, want := range memberTemp(members[i], low) {
			if math.Abs(have[k]-want) > 3e-5 {
				t.Fatalf("data set %d: %v, want %v", i, have[k], want)
			}
		}
	}
	if p.By != "" || p.Members != 3 || len(p.Groups) != 3 || len(p.Notes) != 0 {
		t.Errorf("%+v", p)
	}
	in.Asked, in.Members = []string{"swag-member-temp"}, 1
	single := one(t, infertest.Run(t), in, targets)
	fitted, err := single.Data[0].Task.Calibrators()[0].Fit(members[1][0], val.Labels())
	if err != nil {
		t.Fatal(err)
	}
	want := single.Data[0].Task.Apply(nil, fitted, members[0][0])
	for k, have := range single.Data[0].Mean() {
		if math.Abs(have-want[k]) > 3e-5 {
			t.Fatalf("one member: %v, want %v", have, want[k])
		}
	}
	// Without validation data each half has the temperature of the other half.
	targets.Validation = nil
	halves := one(t, infertest.Run(t), in, targets)
	crossed, err := task.CrossFit(halves.Data[0].Task, halves.Data[0].Task.Calibrators()[0], members[0][0], test.Labels(), 2, in.Seed)
	if err != nil || !strings.Contains(halves.Name, ", ") {
		t.Fatalf("%s, %v", halves.Name, err)
	}
	want = crossed.Apply(halves.Data[0].Task, members[0][0])
	for k, have := range halves.Data[0].Mean() {
		if math.Abs(have-want[k]) > 3e-5 {
			t.Fatalf("halves: %v, want %v", have, want[k])
		}
	}
	targets.Noise = false
	if got, notes := predicted(t, infertest.Run(t), in, targets); len(got) != 0 || len(notes) != 1 || notes[0] != "SWAG-MemberTemp is left out: only the comparison has this method" {
		t.Errorf("%d methods, notes %q", len(got), notes)
	}
}

// The search finds the lower one of two minima, and the bounds of temperatures.
func TestLowest(t *testing.T) {
	t.Parallel()
	square := func(x, at float64) float64 { return math.Pow(math.Log(x/at), 2) }
	for want, nll := range map[float64]func(float64) float64{
		30:   func(x float64) float64 { return min(square(x, 1.5)+0.2, square(x, 30)) },
		0.37: func(x float64) float64 { return square(x, 0.37) },
		1e-3: func(x float64) float64 { return x },
		4e4:  func(x float64) float64 { return square(x, 4e4) },
		1e6:  func(x float64) float64 { return -x },
	} {
		if got, _ := baseline.Lowest(nll); math.Abs(got-want) > 1e-4*want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
