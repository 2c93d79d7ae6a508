package target

import (
	"fmt"
	"sync/atomic"

	"github.com/swagwrap/swagwrap/internal/setting"
)

// White remembers which number the labels of one data set have for class 1 of two classes: 1, or 255 as drawing programs write
// white. It may not be both. Any number of goroutines may use it.
type White struct{ one, white atomic.Bool }

// white is the label of white pixels.
const white = 255

// class returns the class of the label v, which is 1 or 255.
func (w *White) class(v int64) (int, error) {
	seen, other := &w.one, &w.white
	if v == white {
		seen, other = other, seen
	}
	if !seen.Load() {
		seen.Store(true) // before the other is read, so one of two goroutines sees both
	}
	if other.Load() {
		return 0, fmt.Errorf("label %d, and other labels are %d: want masks of 0 and 1, or of 0 and %d. If %d is no class, fit with %s "+
			"and this number", v, 1+white-v, white, white, setting.IgnoreIndex)
	}
	return 1, nil
}

// Rule says in words what was found, or returns "".
func (w *White) Rule() string {
	if w == nil || !w.white.Load() {
		return ""
	}
	return fmt.Sprintf("label %d is class 1, since the labels have 0 and %d only", white, white)
}

// Found reports whether a label of class 1 was seen.
func (w *White) Found() bool { return w.one.Load() || w.white.Load() }
