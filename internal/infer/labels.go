package infer

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// CheckLabels fails if an example has a label that the task cannot have, such as a class that the network does not know. name
// returns the name of an example. Examples without a label pass. Labels of pixels and tokens are checked when they are
// used, because each example has a file of them.
func CheckLabels(t task.Task, labels target.Target, name func(i int) string) error {
	if labels.Dense() {
		return nil
	}
	for i := range labels.Len() {
		label := labels.At(i)
		if !label.Known() {
			continue
		}
		if err := t.CheckLabel(label); err != nil {
			return fmt.Errorf("%s: %w", name(i), err)
		}
	}
	return nil
}
