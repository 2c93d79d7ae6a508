package statedict

import (
	"math"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// A Rounding is what a 16-bit type did to a member, in the weights that it was measured on.
type Rounding struct {
	As      weights.DType
	Tensors int // parameters that were measured
	// Error is the distance that rounding moves the weights by. Distance is that of the member from SWA, or for SWA
	// the size of the posterior's standard deviations. Size is that of the weights.
	Error, Distance, Size float64
	// Lost are the tensors in which rounding moves the weights by more than half of their distance. Same is the share of weights
	// that the member and SWA have in common after rounding, and that differed before.
	Lost []string
	Same float64
}

// measured is the number of weights of each tensor that rounding is measured on.
const measured = 1 << 16

// Rounding measures what the 16-bit types of the parameters do to the member. mean is the vector of SWA, and p the posterior. swa says
// that the member is SWA itself. The result is nil if no parameter is rounded to 16 bits.
func (w *Weights) Rounding(p *swag.Posterior, mean weights.Vector, swa bool) (*Rounding, error) {
	r := &Rounding{}
	var sum squares
	same, all := 0, 0
	for _, t := range w.tensors {
		as := w.dtype(t)
		if t.role != weights.Parameter || t.of != "" || as != weights.F16 && as != weights.BF16 {
			continue
		}
		n, _ := weights.Elements(t.shape)
		b := newBlock(min(n, measured))
		if err := b.read(w.Parameters, mean, t.offset); err != nil {
			return nil, err
		}
		if swa && !p.Single() {
			b.variance = make([]float64, len(b.member))
			p.Variance(b.variance, t.offset)
		}
		one, k := b.compare(as, swa)
		if n > 0 && one.distance > 0 {
			same, all = same+k, all+len(b.member)
			if 2*math.Sqrt(one.err) > math.Sqrt(one.distance) {
				r.Lost = append(r.Lost, t.name)
			}
		}
		r.As, r.Tensors = as, r.Tensors+1
		scale := float64(n) / float64(max(1, len(b.member)))
		sum.err, sum.distance, sum.size = sum.err+scale*one.err, sum.distance+scale*one.distance, sum.size+scale*one.size
	}
	if r.Tensors == 0 {
		return nil, nil
	}
	r.Error, r.Distance, r.Size = math.Sqrt(sum.err), math.Sqrt(sum.distance), math.Sqrt(sum.size)
	if all > 0 && !swa {
		r.Same = float64(same) / float64(all)
	}
	return r, nil
}

// squares are squared lengths.
type squares struct{ err, distance, size float64 }

// A block is some weights of a tensor.
type block struct {
	member, mean, rounded, roundedMean []float32
	encoded                            []byte
	variance                           []float64 // of the posterior, for SWA
}

func newBlock(n int64) *block {
	return &block{
		member:      make([]float32, n),
		mean:        make([]float32, n),
		rounded:     make([]float32, n),
		roundedMean: make([]float32, n),
		encoded:     make([]byte, 2*n),
	}
}

func (b *block) read(member, mean weights.Vector, off int64) error {
	if err := member.ReadAt(b.member, off); err != nil {
		return err
	}
	return mean.ReadAt(b.mean, off)
}

// compare returns the squared lengths, and the number of weights that differ from the mean before rounding only.
func (b *block) compare(as weights.DType, swa bool) (s squares, same int) {
	as.PutFloat32s(b.encoded, b.member)
	as.Float32s(b.rounded, b.encoded)
	as.PutFloat32s(b.encoded, b.mean)
	as.Float32s(b.roundedMean, b.encoded)
	for i, v := range b.member {
		e, d := float64(b.rounded[i])-float64(v), float64(v)-float64(b.mean[i])
		s.err, s.size = s.err+e*e, s.size+float64(v)*float64(v)
		if swa && b.variance != nil {
			s.distance += b.variance[i]
		} else {
			s.distance += d * d
		}
		if v != b.mean[i] && b.rounded[i] == b.roundedMean[i] {
			same++
		}
	}
	return s, same
}
