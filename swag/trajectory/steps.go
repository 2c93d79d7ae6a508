package trajectory

import (
	"context"
	"math"

	"github.com/swagwrap/swagwrap/weights"
)

const (
	blockLen     = 1 << 14  // weights that are read of an iterate at a time
	releaseBytes = 64 << 20 // that are read before the memory of mapped files is given back
)

// Step describes one iterate by itself and against the one before it.
type Step struct {
	Norm        float64 // ‖θ_i‖
	Moved       float64 // ‖θ_i − θ_{i−1}‖; 0 for the first
	Implausible int64   // weights that are not [weights.Plausible]; they are left out of the norms
	First       int64   // index of the first of them in the vector
	Value       float32 // of the first of them
}

// Steps reads the iterates block by block. The norms tell whether the learning
// rate moves the network at all, and whether an iterate is out of line. release,
// if not nil, is called now and then to give the memory of mapped files back.
func Steps(ctx context.Context, iterates []weights.Vector, release func()) ([]Step, error) {
	steps := make([]Step, len(iterates))
	if len(iterates) == 0 {
		return steps, nil
	}
	block, before := make([]float32, blockLen), make([]float32, blockLen)
	unreleased := int64(0)
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
		if unreleased += 4 * n * int64(len(iterates)); unreleased > releaseBytes && release != nil {
			release()
			unreleased = 0
		}
	}
	for t := range steps {
		steps[t].Norm, steps[t].Moved = math.Sqrt(steps[t].Norm), math.Sqrt(steps[t].Moved)
	}
	return steps, nil
}
