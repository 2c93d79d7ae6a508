package swag_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
)

// single is a posterior of one checkpoint, whose weights include −0 and a number beyond float16.
func single(t testing.TB) (weights.Slice, []byte) {
	it := iterates(small(t), 1, noisy(1, 0.5))
	theta := it.Checkpoints[0].Theta.(weights.Slice)
	theta[0], theta[1] = float32(math.Copysign(0, -1)), 1e-40
	it.Checkpoints[0].Statistics = weights.Slice{1, 2, 3, 4}
	it.Graph = []byte("graph")
	return theta, fitBytes(t, it, swag.FitOptions{Producer: "swagwrap test", Health: trajectory.Describe})
}

func TestSingle(t *testing.T) {
	t.Parallel()
	theta, data := single(t)
	p, err := swag.Parse("p.swag", data)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(); err != nil {
		t.Error(err)
	}
	if !p.Single() || p.Options.Rank != swag.DefaultRank || p.Options.Columns != 0 || p.Options.Divisor != 0 || !slices.Equal(p.Statistics, weights.Slice{1, 2, 3, 4}) {
		t.Errorf("%+v, statistics %v", p.Options, p.Statistics)
	}
	// The file has no section that could pass for a spread.
	st, err := weights.ParseSafetensors("", data)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range st.Sections {
		names = append(names, s.Name)
	}
	if want := []string{"mean", "statistics", "health", "graph"}; !slices.Equal(names, want) {
		t.Errorf("sections %q, want %q", names, want)
	}
	same := func(what string, v weights.Vector) {
		t.Helper()
		got := make([]float32, v.Len())
		if err := v.ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(theta[i]) {
				t.Errorf("%s: weight %d is %v, want %v", what, i, got[i], theta[i])
			}
		}
	}
	same("last", p.Last())
	if recent := p.Recent(3); len(recent) != 1 {
		t.Errorf("%d recent checkpoints", len(recent))
	} else {
		same("recent", recent[0])
	}
	for _, c := range []swag.Covariance{swag.LowRankPlusDiagonal, swag.Diagonal, swag.Isotropic} {
		s, err := swag.NewSampler(p, swag.SampleOptions{Covariance: c})
		if err != nil {
			t.Fatal(err)
		}
		same("scale 0, "+c.String(), s.Vector(t.Context(), 0))
		if _, err := swag.NewSampler(p, swag.SampleOptions{Scale: 0.5, Covariance: c}); !errors.Is(err, swag.ErrSingle) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, _, err := p.LowRank(0); !errors.Is(err, swag.ErrSingle) {
		t.Error(err)
	}
	h, err := trajectory.Check(p)
	if err != nil || h.Checkpoints != 1 || h.Frozen != 0 || h.Verdict(nil) != nil {
		t.Errorf("health %+v, %v", h, err)
	}
	wantError(t, p.Continues(), "p.swag: holds one checkpoint")
}

func TestSingleRefuses(t *testing.T) {
	t.Parallel()
	one := iterates(small(t), 1, noisy(1, 0.5))
	for _, opts := range []swag.FitOptions{{Reference: true}, {Deviations: swag.Final}, {ReferToCheckpoints: true}} {
		wantError(t, swag.Fit(t.Context(), new(memory), one, opts), "one checkpoint has no deviations")
	}
	_, data := single(t)
	_, several := smallFile(t)
	options := func(o swag.Options) func(map[string]string, []weights.Section) {
		js, _ := json.Marshal(o)
		return func(m map[string]string, _ []weights.Section) { m["options"] = string(js) }
	}
	sound := swag.Options{Rank: 20, Models: 1, Deviations: swag.Running}
	for _, c := range []struct {
		name string
		of   []byte
		edit func(o *swag.Options)
		want string
	}{
		{"columns", data, func(o *swag.Options) { o.Columns, o.Divisor = 1, 1 }, "one checkpoint has no deviations"},
		{"divisor", data, func(o *swag.Options) { o.Divisor = 19 }, "one checkpoint has no deviations"},
		{"referenced", data, func(o *swag.Options) { o.Referenced = true }, "one checkpoint has no deviations"},
		{"compat", data, func(o *swag.Options) { o.Compat = "reference" }, "one checkpoint has no deviations"},
		{"final", data, func(o *swag.Options) { o.Deviations = swag.Final }, "0 deviation columns"},
		{"θ0", data, func(o *swag.Options) { o.Theta0, o.Models = true, 2 }, "2 models of 1 checkpoints"},
		{"several that claim to be one", several, func(*swag.Options) {}, "1 models of 5 checkpoints"},
	} {
		o := sound
		c.edit(&o)
		_, err := swag.Parse("p.swag", rewrite(t, c.of, options(o)))
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		wantError(t, err, "p.swag: ", c.want)
	}
	// A section with a variance or with deviations is refused.
	for _, name := range []string{"variance", "deviations", "last", "trajectory"} {
		st, err := weights.ParseSafetensors("", data)
		if err != nil {
			t.Fatal(err)
		}
		sections := append([]weights.Section{{Name: name, DType: weights.F64, Shape: []int64{12}}}, st.Sections...)
		_, err = swag.Parse("p.swag", zeros(t, sections, st.Metadata))
		wantError(t, err, `section "`+name+`": is not of a posterior with these options`)
	}
}
