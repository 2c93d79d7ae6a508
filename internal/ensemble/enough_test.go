package ensemble_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Only the judged examples decide. Here all the others need as many members as there may be, since nothing cancels in a pair.
func TestEnoughJudged(t *testing.T) {
	t.Parallel()
	binary, err := task.New("binary", task.OutputSpec{Count: 1})
	if err != nil {
		t.Fatal(err)
	}
	const examples = 1000
	data := dataset.Picked(infertest.Digits(t, "test.npz"), slices.Repeat([]int{0}, examples))
	judged := ensemble.Judged(data, false)
	if len(judged) != 128 || !slices.IsSorted(judged) || judged[0] >= 8 || judged[127] < 992 {
		t.Fatalf("judged %v", judged)
	}
	if few := ensemble.Judged(data, true); len(few) != 2 || few[1] < examples/2 {
		t.Errorf("of pixels %v", few)
	}
	if all := ensemble.Judged(dataset.Part(data, 0, 9), false); !slices.Equal(all, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("of nine examples %v", all)
	}
	for _, tc := range []struct {
		judged []int
		want   int
	}{{judged, 6}, {nil, 30}} {
		e, rng, members, z := ensemble.Enough{Judged: tc.judged}, rand.New(rand.NewPCG(1, 0)), 0, 0.0
		for !e.Reached() {
			if members++; members%2 == 1 {
				z = rng.NormFloat64()
			}
			var sums infer.Sums
			sums.Init("", examples, binary)
			for i := range examples {
				p := 0.5 + 0.01*z*z
				if slices.Contains(judged, i) { // mirror images
					p = 0.5 + 0.01*z*float64(1-2*(members%2))
				}
				sums.Add(i, []float64{1 - p, p}, 0, 1)
			}
			e.Add(&sums)
		}
		if members != tc.want {
			t.Errorf("%d judged: %d members, want %d", len(tc.judged), members, tc.want)
		}
	}
}
