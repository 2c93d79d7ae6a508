package swag_test

import (
	"testing"

	"github.com/swagwrap/swagwrap/swag"
)

const benchmarkLen = 1_000_000 // weights, about a tenth of a ResNet-18

func benchmarkIterates(b *testing.B) swag.Input {
	return iterates(flat(b, benchmarkLen), 20, func(t, i int) float64 { return float64((t*t+3)*(i%17)) / 16 })
}

// The figure per weight is for all 20 iterates together.
func BenchmarkFit(b *testing.B) {
	it := benchmarkIterates(b)
	file := make(memory, 200*benchmarkLen)
	for b.Loop() {
		if err := swag.Fit(b.Context(), &file, it, swag.FitOptions{Workers: 1}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/benchmarkLen, "ns/weight")
}

func BenchmarkDraw(b *testing.B) {
	p := fit(b, benchmarkIterates(b), swag.FitOptions{})
	const S = 30
	dst, members := make([][]float32, S), make([]int, S)
	for j := range dst {
		dst[j], members[j] = make([]float32, benchmarkLen), j
	}
	for _, c := range []swag.Covariance{swag.LowRankPlusDiagonal, swag.Diagonal} {
		for name, antithetic := range map[string]bool{"independent": false, "antithetic": true} {
			b.Run(c.String()+"/"+name, func(b *testing.B) {
				s := sampler(b, p, swag.SampleOptions{Seed: 1, Scale: 0.5, Covariance: c, Antithetic: antithetic, Workers: 1})
				for b.Loop() {
					if err := s.Draw(b.Context(), dst, members); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/benchmarkLen/S, "ns/weight/member")
			})
		}
	}
}
