package landscape

import (
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/task"
)

func TestLineVerdict(t *testing.T) {
	line := func(i int, loss ...float64) Line {
		l := Line{I: i, Deviation: 2}
		for k, v := range loss {
			at := make([]float64, i+1)
			at[i] = 4 * float64(k-1)
			l.Points = append(l.Points, Point{At: at, Evaluation: &task.Evaluation{Scores: []task.Score{{Metric: task.Metric{Key: "nll"}, Value: v}}}})
		}
		return l
	}
	for want, lines := range map[string][]Line{
		"At 2 posterior standard deviations from SWA the NLL rises by +0.2000 along direction 1. Nowhere on these lines is it lower than at SWA.": {line(0, 0.5, 0.2, 0.3)},
		"At 2 posterior standard deviations from SWA the NLL changes by +0.1000 (direction 2) to +0.2000 (direction 1), in the mean of both sides. The lowest on these lines is −0.1000, at +2.00 standard deviations along direction 2.": {
			line(0, 0.5, 0.2, 0.3), line(1, 0.5, 0.2, 0.1)},
	} {
		if got := strings.Join(lineVerdict("NLL", 2, lines), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
