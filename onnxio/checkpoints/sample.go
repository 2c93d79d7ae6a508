package checkpoints

import (
	"fmt"
	"slices"

	"github.com/swagwrap/swagwrap/weights"
)

// sampleRun is the number of weights side by side that a sample takes at a place.
const sampleRun = 32

// Sample returns some of the parameters of every model, the same in all: about most of them, from all over each tensor, and some of
// every tensor. It reads only these places.
func (s *Set) Sample(most int) (values [][]float32, err error) {
	err = weights.Guarded(func() error {
		values, err = s.sample(most)
		return err
	})()
	return values, err
}

func (s *Set) sample(most int) ([][]float32, error) {
	values := make([][]float32, len(s.Models))
	total := s.Layout.Len(weights.Parameter)
	for _, t := range s.Layout.Role(weights.Parameter) {
		runs := max(1, int64(most)*t.Len()/(total*sampleRun))
		step := max(1, t.Len()/runs)
		for k, m := range s.Models {
			held, err := m.Lookup(t)
			if err != nil {
				return nil, err
			}
			for off := int64(0); off < t.Len(); off += max(step, sampleRun) {
				row := make([]float32, min(sampleRun, t.Len()-off))
				t.DType.Float32s(row, m.Stretch(held, off, int64(len(row))))
				values[k] = append(values[k], row...)
			}
			s.read(int(min(t.Len()*t.DType.Size(), runs<<12)), m)
		}
	}
	s.touched.release()
	if i := slices.IndexFunc(values, func(v []float32) bool { return len(v) != len(values[0]) }); i > 0 {
		return nil, fmt.Errorf("checkpoints: %d weights of %s, want %d", len(values[i]), s.Models[i].Path, len(values[0]))
	}
	return values, nil
}
