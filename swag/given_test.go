package swag_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
)

// given are iterates with a mean of another source, from m times their standard deviation away.
func given(t testing.TB, m float64) swag.Input {
	it := iterates(small(t), 6, noisy(1, 0.5))
	mean := make(weights.Slice, 12)
	for _, c := range it.Checkpoints {
		for i, v := range c.Theta.(weights.Slice) {
			mean[i] += v/6 + float32(m*0.5/6)
		}
	}
	it.Mean = &swag.Checkpoint{Path: "mean.pt", SHA256: "00", Theta: mean}
	return it
}

func TestGivenMeanRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(in *swag.Input, o *swag.FitOptions)
		want []string
	}{
		"one checkpoint": {func(in *swag.Input, _ *swag.FitOptions) { in.Checkpoints = in.Checkpoints[:1] }, []string{"a given mean needs at least 2 checkpoints"}},
		"θ0":             {func(in *swag.Input, _ *swag.FitOptions) { in.Theta0 = &in.Checkpoints[0] }, []string{"a given mean", "no other choice"}},
		"reference":      {func(_ *swag.Input, o *swag.FitOptions) { o.Reference = true }, []string{"no other choice"}},
		"referenced":     {func(_ *swag.Input, o *swag.FitOptions) { o.ReferToCheckpoints = true }, []string{"no other choice"}},
		"no mean":        {func(in *swag.Input, o *swag.FitOptions) { in.Mean, o.Deviations = nil, swag.Given }, []string{"need the mean"}},
		"length":         {func(in *swag.Input, _ *swag.FitOptions) { in.Mean.Theta = make(weights.Slice, 3) }, []string{"mean.pt: 3 weights, want 12"}},
		"NaN":            {func(in *swag.Input, _ *swag.FitOptions) { in.Mean.Theta.(weights.Slice)[4] = float32(math.NaN()) }, []string{"mean.pt: ", "NaN"}},
		"too large":      {func(in *swag.Input, _ *swag.FitOptions) { in.Mean.Theta.(weights.Slice)[11] = 1e30 }, []string{"mean.pt: ", "fc.weight", "1e+30"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, opts := given(t, 0), swag.FitOptions{}
			c.edit(&in, &opts)
			wantError(t, swag.Fit(t.Context(), new(memory), in, opts), c.want...)
		})
	}
	p := fit(t, given(t, 0), swag.FitOptions{})
	wantError(t, p.Continues(), "p.swag: its mean was given")

	data := fitBytes(t, given(t, 0), swag.FitOptions{})
	plain := given(t, 0)
	plain.Mean = nil
	other := fitBytes(t, plain, swag.FitOptions{})
	options := func(o swag.Options) string { js, _ := json.Marshal(o); return string(js) }
	sound := swag.Options{Rank: 20, Columns: 6, Divisor: 5, Models: 6, Deviations: swag.Given}
	for name, c := range map[string]struct {
		data []byte
		edit func(m map[string]string)
		want string
	}{
		"no file of the mean":  {data, func(m map[string]string) { delete(m, "mean") }, `deviations "given", but metadata "mean" is ""`},
		"a file, but no mean":  {other, func(m map[string]string) { m["mean"] = `{"path":"a"}` }, `deviations "running", but metadata "mean"`},
		"damaged":              {data, func(m map[string]string) { m["mean"] = "{" }, `metadata "mean"`},
		"as the authors' code": {data, func(m map[string]string) { o := sound; o.Compat = "reference"; m["options"] = options(o) }, "no fit combines"},
		"referenced":           {data, func(m map[string]string) { o := sound; o.Referenced = true; m["options"] = options(o) }, "no fit combines"},
	} {
		_, err := swag.Parse("p.swag", rewrite(t, c.data, func(m map[string]string, _ []weights.Section) { c.edit(m) }))
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		wantError(t, err, "p.swag: ", c.want)
	}
}

// The distance of a given mean is reported, and is a problem if it is large. The variance about it is larger by its square.
func TestGivenMeanOffset(t *testing.T) {
	t.Parallel()
	trace := func(p *swag.Posterior) (sum float64) {
		_, variance, _ := contents(p)
		for _, v := range variance {
			sum += v
		}
		return sum
	}
	own := given(t, 0)
	own.Mean = nil
	spread := math.Sqrt(trace(fit(t, own, swag.FitOptions{})))
	for _, m := range []float64{0.5, 4, 20} {
		p := fit(t, given(t, m), swag.FitOptions{Health: trajectory.Describe})
		h, err := trajectory.Check(p)
		if err != nil {
			t.Fatal(err)
		}
		want := m * 0.5 * math.Sqrt(12) / spread
		if math.Abs(h.Offset/want-1) > 1e-6 {
			t.Errorf("offset %v, want %v", h.Offset, want)
		}
		if got, want := trace(p), spread*spread*(1+want*want); math.Abs(got/want-1) > 1e-6 {
			t.Errorf("variance %v, want %v", got, want)
		}
		found := h.Verdict(trajectory.Names(p))
		if told := len(found) > 0 && found[0].Saw[:14] == "the given mean"; told != (want > 1.5) || told && found[0].Serious != (want > 3) {
			t.Errorf("offset %v: %v", want, found)
		}
	}
}
