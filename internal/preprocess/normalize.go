package preprocess

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Normalizer converts stored values to a network's inputs, and inputs back to stored values.
type Normalizer struct {
	scale     float64
	mean, std []float32      // of equal length, 1 or the number of channels
	last      bool           // channels are the last dimension
	table     [][256]float32 // for uint8: the result by channel and stored value
}

// Normalizer returns a Normalizer for examples of the given shape that are stored as uint8 or as floats.
func (s Settings) Normalizer(shape []int64, isUint8 bool) (Normalizer, error) {
	if s.Scale < 0 || math.IsNaN(s.Scale) || math.IsInf(s.Scale, 0) {
		return Normalizer{}, fmt.Errorf("scale %v, want a positive number", s.Scale)
	}
	if err := s.checkWords(); err != nil {
		return Normalizer{}, err
	}
	n := Normalizer{scale: cmp.Or(s.Scale, 1), last: s.LayoutOf(shape) == "nhwc"}
	planes := max(len(s.Mean), len(s.Std), 1)
	var err error
	if n.mean, err = n.perChannel("mean", s.Mean, 0, planes, shape); err != nil {
		return Normalizer{}, err
	}
	if n.std, err = n.perChannel("std", s.Std, 1, planes, shape); err != nil {
		return Normalizer{}, err
	}
	if slices.Min(n.std) <= 0 {
		return Normalizer{}, fmt.Errorf("std %v, want positive numbers", s.Std)
	}
	if s.Channels == "bgr" {
		slices.Reverse(n.mean)
		slices.Reverse(n.std)
	}
	if !isUint8 {
		return n, nil
	}
	if s, _, err = s.InUnits(); err != nil {
		return Normalizer{}, err
	}
	n.table = make([][256]float32, planes)
	for c := range n.table {
		for x := range n.table[c] {
			v := float64(x) * s.Scale
			if s.Scale == 0 {
				v = float64(x) / 255 // not x·(1/255): torchvision divides
			}
			y := n.apply(float32(v), c)
			if !finite(y) {
				return Normalizer{}, fmt.Errorf("scale %v, mean %v, std %v overflow float32", s.Scale, s.Mean, s.Std)
			}
			n.table[c][x] = y
		}
	}
	return n, nil
}

// perChannel checks Mean or Std and expands it to planes values.
func (n *Normalizer) perChannel(name string, v []float64, unset float32, planes int, shape []int64) ([]float32, error) {
	channels, which := shape[0], "first"
	if n.last {
		channels, which = shape[len(shape)-1], "last"
	}
	if len(v) > 1 && int64(len(v)) != channels {
		return nil, fmt.Errorf("%d values of %s, want 1 or %d: the channels, %s dimension of shape %d", len(v), name,
			channels, which, shape)
	}
	out := make([]float32, planes)
	for i := range out {
		out[i] = unset
		if len(v) > 0 {
			out[i] = float32(v[min(i, len(v)-1)])
		}
		if !finite(out[i]) {
			return nil, fmt.Errorf("%s %v, want finite numbers", name, v)
		}
	}
	return out, nil
}

func finite(x float32) bool { return x-x == 0 }

func (n *Normalizer) apply(scaled float32, c int) float32 {
	return (scaled - n.mean[c]) / n.std[c]
}

// Bytes writes the results for the uint8 values src to dst.
func (n *Normalizer) Bytes(dst []float32, src []byte) {
	channels := len(n.table)
	if n.last && channels > 1 {
		for c := range n.table {
			t := &n.table[c]
			for j := c; j < len(src); j += channels {
				dst[j] = t[src[j]]
			}
		}
		return
	}
	plane := len(dst) / channels
	for c := range n.table {
		t := &n.table[c]
		s := src[c*plane : (c+1)*plane]
		d := dst[c*plane:][:len(s)] // spares the loop a check
		for j, x := range s {
			d[j] = t[x]
		}
	}
}

// Floats writes the results for little-endian floats of size 4 or 8 bytes to dst. It returns the index of the first
// result that is not finite, or -1.
func (n *Normalizer) Floats(dst []float32, src []byte, size int) int {
	bad := -1
	first, step, count := n.strides(len(dst))
	for c := range n.mean {
		for j, k := c*first, 0; k < count; j, k = j+step, k+1 {
			var x float64
			if size == 4 {
				x = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*j:])))
			} else {
				x = math.Float64frombits(binary.LittleEndian.Uint64(src[8*j:]))
			}
			dst[j] = n.apply(float32(x*n.scale), c)
			if !finite(dst[j]) && (bad < 0 || j < bad) {
				bad = j
			}
		}
	}
	return bad
}

// strides describes how the channels share size values. It returns the distance between the first values of two
// channels and that between two values of a channel. The last result is the number of values per channel.
func (n *Normalizer) strides(size int) (first, step, count int) {
	channels := len(n.mean)
	if n.last {
		return 1, channels, size / channels
	}
	return size / channels, 1, size / channels
}

// Undo takes standard deviation and mean out of values in place. Scaled values are left.
func (n *Normalizer) Undo(values []float32) {
	first, step, count := n.strides(len(values))
	for c := range n.mean {
		for j, k := c*first, 0; k < count; j, k = j+step, k+1 {
			values[j] = float32(values[j]*n.std[c]) + n.mean[c]
		}
	}
}
