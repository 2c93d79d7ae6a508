package dataset

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/target"
)

// most is the number of examples in which [examples.lookAtLabels] looks for a second class.
const most = 1000

// allLabels returns the labels of a dataset, or those of its whole pictures.
func allLabels(d Dataset) target.Target {
	if t, ok := d.(*Tiles); ok {
		return t.PictureLabels
	}
	return d.Labels()
}

// lookAtLabels keeps what the labels of positions show: that 255 is class 1, or that only one class counts beside a label that
// is ignored. It stops as soon as it has seen two classes. Labels that cannot be read are left to those who need them.
func (e *examples) lookAtLabels(labels target.Target, opts Options) {
	at := opts.Positions
	if at == nil || opts.Target != target.Classes || !labels.Dense() || at.Classes != 2 && at.Ignore == nil {
		return
	}
	class, ignored, n := target.Unknown, false, min(most, labels.Len())
	for i := range n {
		one, err := labels.Load(i)
		if err != nil {
			return
		}
		for _, c := range one.Classes {
			switch {
			case c == target.Unknown:
				ignored = true
			case class == target.Unknown:
				class = c
			case class != c:
				e.told.note(at.White.Rule())
				return
			}
		}
	}
	e.told.note(at.White.Rule())
	if at.Ignore == nil || !ignored || class == target.Unknown || at.Classes == 1 {
		return
	}
	doubt := fmt.Sprintf("class %d is the only one that counts in the labels of %d examples, beside the label %d that counts nowhere",
		class, n, *at.Ignore)
	if *at.Ignore == 255 && class == 0 && at.Classes == 2 {
		doubt += ". In masks of 0 and 255, 255 is mostly class 1: fit without " + setting.IgnoreIndex.String()
	}
	e.told.doubts = append(e.told.doubts, doubt)
}
