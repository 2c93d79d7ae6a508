package task

import (
	"fmt"
	"math"
	"slices"
)

// Watched says where rows have the numbers whose distribution shows that data differ from validation data: confidence,
// entropies, deviations, and the predicted class.
type Watched struct {
	Names []string
	// Classes is the number of classes, or 0 for a task without one predicted class.
	Classes int

	at    []int
	class int
}

// watched are the columns of numbers to watch, of all tasks.
var watched = []string{"confidence", "predictive_entropy", "mutual_information", "mean", "std", "epistemic_std"}

// Watch returns what to watch in rows of a task. Tasks with several positions have nothing.
func Watch(t Task, columns []Column) (w Watched) {
	if Large(t) {
		return w
	}
	at := 0
	for _, c := range columns {
		for k := range c.Len() {
			switch {
			case slices.Contains(watched, c.Name) && c.Shape == nil:
				w.Names, w.at = append(w.Names, c.Name), append(w.at, at)
			case slices.Contains(watched, c.Name):
				w.Names, w.at = append(w.Names, fmt.Sprintf("%s_%d", c.Name, k)), append(w.at, at+k)
			case c.Name == "prediction" && c.Kind == Class:
				w.Classes, w.class = t.About().Classes, at
			}
		}
		at += c.Len()
	}
	return w
}

// Only returns the part with these names, in their order, and reports whether all were found.
func (w Watched) Only(names []string) (some Watched, ok bool) {
	some = Watched{Names: names, Classes: w.Classes, class: w.class}
	for _, name := range names {
		k := slices.Index(w.Names, name)
		if k < 0 {
			return some, false
		}
		some.at = append(some.at, w.at[k])
	}
	return some, true
}

// Numbers returns the numbers of a row, and its predicted class or −1. The slice is reused.
func (w Watched) Numbers(dst, row []float64) (numbers []float64, class int) {
	dst = dst[:0]
	for _, at := range w.at {
		dst = append(dst, row[at])
	}
	if w.Classes == 0 || math.IsNaN(row[w.class]) {
		return dst, -1
	}
	return dst, int(row[w.class])
}
