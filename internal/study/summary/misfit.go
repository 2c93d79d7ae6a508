package summary

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
)

// confusion counts labelled rows by their class and the predicted one.
type confusion struct {
	at     int // place of the prediction in the values of a row
	counts map[[2]int]int
}

// newConfusion returns nil for rows without a predicted class.
func newConfusion(columns []task.Column) *confusion {
	at := 0
	for _, c := range columns {
		if c.Name == "prediction" && c.Kind == task.Class && c.Shape == nil {
			return &confusion{at, map[[2]int]int{}}
		}
		at += c.Len()
	}
	return nil
}

func (c *confusion) add(r *predictions.Row) {
	if c != nil && r.Label >= 0 && c.at < len(r.Values) {
		c.counts[[2]int{r.Label, int(r.Values[c.at])}]++
	}
}

// exchanged returns pairs of a class and another one, as which most of its examples are predicted, if there are several and no two
// classes have the same other one. So it is if labels have another order than the scores. Networks that learnt little predict
// the same few classes.
func (c *confusion) exchanged() (pairs [][2]int) {
	const least, most = 10, 0.6 // examples of a class, and their share that counts
	if c == nil {
		return nil
	}
	total, to := map[int]int{}, map[int]int{}
	for pair, n := range c.counts {
		total[pair[0]] += n
	}
	for pair, n := range c.counts {
		if of := total[pair[0]]; pair[0] != pair[1] && of >= least && float64(n) > most*float64(of) {
			pairs = append(pairs, pair)
			to[pair[1]]++
		}
	}
	for _, n := range to {
		if n > 1 {
			return nil
		}
	}
	if len(pairs) < 2 {
		return nil
	}
	slices.SortFunc(pairs, func(a, b [2]int) int { return a[0] - b[0] })
	return pairs
}

// Misfit returns a warning if the labels seem to have another order than the scores, or "".
func (s *Summary) Misfit() string {
	const shown = 3
	pairs := s.confusion.exchanged()
	if pairs == nil {
		return ""
	}
	var words []string
	for _, p := range pairs[:min(shown, len(pairs))] {
		words = append(words, fmt.Sprintf("most examples of %s are predicted as %s", names.Class(s.classNames, p[0]),
			names.Class(s.classNames, p[1])))
	}
	return fmt.Sprintf("the labels do not fit the scores: %s; %d classes in all. Check the order of the classes: %s",
		strings.Join(words, ", "), len(pairs), setting.Fit.With(setting.ClassNames.With("FILE")))
}
