package compare

import (
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
)

// constant predicts the same for each test example, from the targets of other data.
type constant struct {
	targets target.Target
	of      string // the role of the data
	found   *task.Constant
	task    task.Task // of the last example, and its outcome
	row     []float64
}

// outcome returns the outcome for an example of the task.
func (f *constant) outcome(t task.Task) []float64 {
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

// addConstant adds the constant prediction to the variants of the first method that is scored. Its targets are those of the
// validation data, or of the test data without it.
func (b *builder) addConstant(variants []*variant) []*variant {
	if b.constant != nil {
		return variants
	}
	v := b.variant(&Method{Threshold: b.Threshold})
	v.constant = &constant{targets: b.Test.Labels(), of: "test"}
	if b.Validation != nil {
		v.constant = &constant{targets: b.Validation.Labels(), of: "validation"}
	}
	return append(variants, v)
}

// takeConstant keeps the constant prediction, if it was scored with the last of the variants.
func (b *builder) takeConstant(variants []*variant) {
	if v := variants[len(variants)-1]; v.constant != nil && v.constant.found.Known() > 0 {
		b.constant, b.constantOf = &Method{Name: v.constant.found.Name(v.constant.task)}, v.constant.of
		b.constant.take(v)
	}
}
