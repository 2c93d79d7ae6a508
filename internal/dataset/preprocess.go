package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Preprocess says how a stored value x in channel c becomes an input of the
// network:
//
//	(x·Scale − Mean[c]) / Std[c]
//
// Mean and Std have timm's meaning: they are given for values already scaled to
// [0, 1]. The channel is the first dimension of [Dataset.Shape]. x·Scale is
// rounded to float32, and so is each later step, as torchvision's ToTensor and
// Normalize and Hugging Face's image processors do it.
type Preprocess struct {
	// Scale multiplies stored values (Hugging Face: rescale_factor). Zero means
	// 1/255 for uint8 and 1 for floating types.
	Scale float64 `json:"scale,omitempty"`
	// Mean and Std have length 1 or one value per channel. Nil means 0 and 1.
	Mean []float64 `json:"mean"`
	Std  []float64 `json:"std"`
}

// normalizer is a Preprocess with all defaults filled in.
type normalizer struct {
	scale     float64
	mean, std []float32      // of equal length, 1 or the number of channels
	table     [][256]float32 // for uint8: result by channel and stored value
}

func (p Preprocess) resolve(shape []int64, isUint8 bool) (normalizer, error) {
	if p.Scale < 0 || math.IsNaN(p.Scale) || math.IsInf(p.Scale, 0) {
		return normalizer{}, fmt.Errorf("scale %v, want a positive number", p.Scale)
	}
	n := normalizer{scale: p.Scale}
	if n.scale == 0 {
		n.scale = 1
	}
	planes := max(len(p.Mean), len(p.Std), 1)
	var err error
	if n.mean, err = perChannel("mean", p.Mean, 0, planes, shape); err != nil {
		return normalizer{}, err
	}
	if n.std, err = perChannel("std", p.Std, 1, planes, shape); err != nil {
		return normalizer{}, err
	}
	if i := slices.IndexFunc(n.std, func(v float32) bool { return v <= 0 }); i >= 0 {
		return normalizer{}, fmt.Errorf("std %v, want positive numbers", p.Std)
	}
	if !isUint8 {
		return n, nil
	}
	n.table = make([][256]float32, planes)
	for c := range n.table {
		for x := range n.table[c] {
			v := float64(x) * p.Scale
			if p.Scale == 0 {
				v = float64(x) / 255 // not x·(1/255): torchvision divides
			}
			y := n.apply(float32(v), c)
			if !finite(y) {
				return normalizer{}, fmt.Errorf("scale %v, mean %v, std %v overflow float32", p.Scale, p.Mean, p.Std)
			}
			n.table[c][x] = y
		}
	}
	return n, nil
}

// perChannel checks one of Mean and Std and spreads it over planes values.
func perChannel(name string, v []float64, unset float32, planes int, shape []int64) ([]float32, error) {
	if len(v) > 1 && int64(len(v)) != shape[0] {
		return nil, fmt.Errorf("%d values of %s, want 1 or %d: the channels, first dimension of shape %d", len(v), name, shape[0], shape)
	}
	out := make([]float32, planes)
	for i := range out {
		switch len(v) {
		case 0:
			out[i] = unset
		case 1:
			out[i] = float32(v[0])
		default:
			out[i] = float32(v[i])
		}
		if !finite(out[i]) {
			return nil, fmt.Errorf("%s %v, want finite numbers", name, v)
		}
	}
	return out, nil
}

func finite(x float32) bool { return x-x == 0 }

func (n *normalizer) apply(scaled float32, c int) float32 {
	return (scaled - n.mean[c]) / n.std[c]
}

// applyTable fills dst with the results for the uint8 values src.
func (n *normalizer) applyTable(dst []float32, src []byte) {
	plane := len(dst) / len(n.table)
	for c := range n.table {
		t := &n.table[c]
		d, s := dst[c*plane:(c+1)*plane], src[c*plane:(c+1)*plane]
		for j, x := range s {
			d[j] = t[x]
		}
	}
}

// applyFloat does the same for little-endian floats of 4 or 8 bytes. It returns
// the index of the first result that is not finite, or -1.
func (n *normalizer) applyFloat(dst []float32, src []byte, size int) int {
	plane := len(dst) / len(n.mean)
	for c := range n.mean {
		for j := c * plane; j < (c+1)*plane; j++ {
			var x float64
			if size == 4 {
				x = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*j:])))
			} else {
				x = math.Float64frombits(binary.LittleEndian.Uint64(src[8*j:]))
			}
			dst[j] = n.apply(float32(x*n.scale), c)
			if !finite(dst[j]) {
				return j
			}
		}
	}
	return -1
}
