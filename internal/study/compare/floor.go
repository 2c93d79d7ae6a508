package compare

import (
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// floor predicts the same for each test example, from the targets of other data.
type floor struct {
	targets truth.Truth
	of      string // the role of the data
	found   *task.Constant
	task    task.Task // of the last example, and its outcome
	row     []float64
}

// newFloor takes the targets of the validation data, or those of the test data without it.
func (b *builder) newFloor() *floor {
	if b.Validation != nil {
		return &floor{targets: b.Validation.Labels(), of: "validation"}
	}
	return &floor{targets: b.Test.Labels(), of: "test"}
}

// outcome returns the outcome for an example of the task.
func (f *floor) outcome(t task.Task) []float64 {
	if f.found == nil {
		f.found = task.NewConstant(t)
		for i := range f.targets.Len() {
			if target, err := f.targets.Load(i); err == nil && t.CheckLabel(target) == nil {
				f.found.Add(target)
			}
		}
	}
	if len(f.row) != t.About().Width { // pictures may have several sizes
		f.row, f.task = f.found.Outcome(t), t
	}
	return f.row
}

// addFloor adds the floor to the variants of the first method that is scored.
func (b *builder) addFloor(variants []*variant) []*variant {
	if b.floor != nil {
		return variants
	}
	v := b.variant(&Method{Threshold: b.Threshold})
	v.floor = b.newFloor()
	return append(variants, v)
}

// takeFloor keeps the floor, if it was scored with the last of the variants.
func (b *builder) takeFloor(variants []*variant) {
	if v := variants[len(variants)-1]; v.floor != nil && v.floor.found.Known() > 0 {
		b.floor, b.floorOf = &Method{Name: v.floor.found.Name(v.floor.task)}, v.floor.of
		b.floor.take(v)
	}
}
