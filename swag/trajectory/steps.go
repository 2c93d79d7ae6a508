package trajectory

import (
	"context"
	"math"

	"github.com/swagwrap/swagwrap/weights"
)

const blockLen = 1 << 14 // weights of an iterate that are read together

// Step describes one iterate and its distance from the previous one.
type Step struct {
	Norm        float64 // ‖θ_i‖
	Moved       float64 // ‖θ_i − θ_{i−1}‖; 0 for the first
	Implausible int64   // weights that are not [weights.Plausible]; the norms leave them out
	First       int64   // index of the first implausible weight in the vector
	Value       float32 // the first implausible weight
}

// Steps reads the iterates block by block. The norms show whether the weights still move, and which iterates are
// unusual. If release is not nil, Steps calls it from time to time to unmap the memory of files.
func Steps(ctx context.Context, iterates []weights.Vector, release func()) ([]Step, error) {
	steps := make([]Step, len(iterates))
	if len(iterates) == 0 {
		return steps, nil
	}
	block, before := make([]float32, blockLen), make([]float32, blockLen)
	var unreleased weights.Unreleased
	for off, d := int64(0), iterates[0].Len(); off < d; off += blockLen {
		n := min(blockLen, d-off)
		for t, theta := range iterates {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := theta.ReadAt(block[:n], off); err != nil {
				return nil, err
			}
			s := &steps[t]
			for i, v := range block[:n] {
				if !weights.Plausible(v) {
					if s.Implausible == 0 {
						s.First, s.Value = off+int64(i), v
					}
					s.Implausible++
					continue
				}
				s.Norm += float64(v) * float64(v)
				if w := before[i]; t > 0 && weights.Plausible(w) {
					s.Moved += (float64(v) - float64(w)) * (float64(v) - float64(w))
				}
			}
			block, before = before, block
		}
		unreleased.Read(4*n*int64(len(iterates)), release)
	}
	for t := range steps {
		steps[t].Norm, steps[t].Moved = math.Sqrt(steps[t].Norm), math.Sqrt(steps[t].Moved)
	}
	return steps, nil
}
