package infer_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/ort"
)

// slowPictures take a while to read, each on one core.
type slowPictures struct {
	dataset.Bytes
	each time.Duration
}

func (s slowPictures) Pixels(dst []byte, i int) error {
	for began := time.Now(); time.Since(began) < s.each; {
	}
	return s.Bytes.Pixels(dst, i)
}

// BenchmarkQueue measures the share of the time in which a simulated device works, from its first batch to its last. It is
// slow or fast, and pictures are slow or fast to read.
func BenchmarkQueue(b *testing.B) {
	const batch = 64
	for _, threads := range []int{1, 2} {
		for _, device := range []time.Duration{time.Microsecond, 20 * time.Millisecond} { // longer than the small network itself
			for _, reading := range []time.Duration{0, 500 * time.Microsecond} {
				b.Run(fmt.Sprintf("threads=%d/device=%v/reading=%v", threads, device, reading), func(b *testing.B) {
					var first atomic.Pointer[time.Time]
					e := infer.NewEngine(infertest.Runtime(b), infer.EngineOptions{Threads: threads, BatchSize: batch})
					progress := func(int) { now := time.Now(); first.CompareAndSwap(nil, &now) }
					pictures := slowPictures{infertest.Digits(b, "test.npz").(dataset.Bytes), reading}
					m := members{infertest.Network(b, infertest.Posterior(b)), 10}
					for b.Loop() {
						end := ort.Simulate(device)
						s, err := infer.NewScorer(b.Context(), e, m, pictures, infer.Options{})
						if err != nil {
							b.Fatal(err)
						}
						end()
						end = ort.Simulate(device)
						first.Store(nil)
						if err = s.Run(b.Context(), 0, progress, func(*infer.Chunk) error { return nil }); err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(end().Seconds()/time.Since(*first.Load()).Seconds(), "busy")
					}
				})
			}
		}
	}
}
