package target

import "testing"

// The numbers are those of do_reduce_labels in transformers: label[label == 0] = 255; label -= 1; label[label == 254] = 255.
func TestReduce(t *testing.T) {
	two := 2
	for stored, want := range map[int64]int{0: Unknown, 1: 0, 2: 1, 150: 149, 254: 253, 255: Unknown, 256: 255, -1: Unknown, -100: Unknown} {
		for _, classes := range []int{0, 2, 150} {
			p := Positions{Width: 1, Reduce: true, Classes: classes, White: &White{}}
			if got, err := p.Class(stored, true); got != want || err != nil {
				t.Errorf("%d classes: label %d is class %d, %v, want %d", classes, stored, got, err, want)
			}
		}
	}
	p := Positions{Width: 1, Reduce: true, Ignore: &two}
	if got, err := p.Class(3, true); got != Unknown || err != nil {
		t.Errorf("the ignored class 2 is stored as 3: %d, %v", got, err)
	}
	if _, err := p.Class(-2, true); err == nil {
		t.Error("label -2")
	}
}
