package sweep

import (
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
)

// The setting that is chosen is the one whose plain average has the least NLL over all
// temperatures, by a search that knows nothing of the fit. There is no test data.
func TestTune(t *testing.T) {
	t.Parallel()
	s := quickSweep(t)
	s.Test, s.Members, s.Validation = nil, 2, dataset.Subset(s.Validation, dataset.Order{Limit: 100})
	seen := int64(0)
	got, err := s.Tune(t.Context(), &infer.Engine{Runtime: infertest.Runtime(t), Workers: 1, Progress: func(images int) { seen += int64(images) }})
	if err != nil {
		t.Fatal(err)
	}
	if want := s.TuneImages(); seen != want || want < 1000 {
		t.Errorf("%d images went through networks, %d were announced", seen, want)
	}
	on := *s
	on.Test = s.Validation
	best, least, temperature, candidates := Setting{}, math.Inf(1), 0.0, 0
	for _, set := range s.Settings() {
		if set.Stale {
			continue
		}
		candidates++
		members := s.Members
		if set.SWA() {
			members = 1
		}
		p := plainAverage(t, &infer.Engine{Runtime: infertest.Runtime(t)}, &on, s.Draws(set), members, false).Mean()
		for k := range 400 {
			beta := math.Exp(float64(k)/100 - 2.5) // 1/T
			nll := 0.0
			for i, label := range s.Validation.Labels().Classes {
				norm := 0.0
				for _, v := range p[10*i:][:10] {
					norm += math.Pow(v, beta)
				}
				nll += (math.Log(norm) - beta*math.Log(p[10*i+label])) / float64(s.Validation.Len())
			}
			if nll < least {
				best, least, temperature = set, nll, 1/beta
			}
		}
	}
	if got.Setting != best || math.Abs(got.NLL-least) > 1e-4 || math.Abs(got.Temperature-temperature) > 2e-2*temperature || got.Candidates != candidates || got.Images != 100 {
		t.Errorf("%+v, a search finds %v with NLL %v at T = %v of %d settings", got, best, least, temperature, candidates)
	}
	if !(got.Share > 0 && got.Share <= 1) {
		t.Errorf("the best in %v of the resamples", got.Share)
	}
}
