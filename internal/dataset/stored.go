package dataset

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/word"
)

// Arrays says what the values in arrays are. It applies to arrays of floats, and to uint8 arrays for a network that
// takes no images. Integers that are not images, and tables, always reach the network unchanged.
type Arrays int

const (
	// Pixels are values that [Options].Preprocess must still scale and normalise.
	Pixels Arrays = iota
	// Seen values reach the network unchanged, as from a training loader.
	Seen
	// Auto decides by the values; see [Options.arrays].
	Auto
)

var arraysWords = []string{"pixels", "seen", "auto"}

// String returns the word of a for --arrays.
func (a Arrays) String() string { return arraysWords[a] }

// ParseArrays is the inverse of [Arrays.String].
func ParseArrays(w string) (Arrays, error) {
	return Arrays(slices.Index(arraysWords, w)), word.Check(w, arraysWords...)
}

// ErrArrays is the error if [Auto] cannot decide what an array holds.
var ErrArrays = errors.New("cannot tell whether they are pixels or what the network saw")

// arrays returns whether the values of x are [Pixels] or [Seen].
//
// uint8 values are pixels if the network takes images, or if Preprocess has a mean, a standard deviation or a scale.
// Other uint8 vectors are features, so they are seen. For other uint8 matrices Auto cannot decide.
//
// Floats are seen if Preprocess would not change them, or if nobody gave it and it only lay beside the checkpoints. Otherwise their
// range decides. Pixels lie in [0, 1]. Normalised values lie in [0, 1] after the normalisation is undone, and their dark pixels are
// negative. Where mean and standard deviation are for pixels from 0 to 255, [0, 255] stands for [0, 1].
func (o Options) arrays(x numpy.Array, shape []int64) (Arrays, error) {
	p := o.Preprocess
	changes := p.Mean != nil || p.Std != nil || p.Scale != 0
	if x.Type.Kind == 'u' {
		switch {
		case o.Uint8 || changes || o.Arrays == Pixels || o.picturesOnly():
			return Pixels, nil
		case o.Arrays == Auto && len(shape) > 1:
			return Seen, fmt.Errorf("uint8 values of shape %d for a network that takes no pictures: %w", shape, ErrArrays)
		}
		return Seen, nil
	}
	if o.Arrays == Auto && p.Arrays == preprocess.Unchanged {
		return Seen, nil
	}
	if o.Arrays != Seen && p.Levels() {
		if r := rangeOf(x, product(shape)); r.min >= 0 && r.max <= 1 {
			return Seen, fmt.Errorf("floats from %.4g to %.4g, and mean %v, std %v are for pixels from 0 to 255: multiply the pixels by "+
				"255, or save them as uint8", r.min, r.max, p.Mean, p.Std)
		}
	}
	if o.Arrays != Auto {
		return o.Arrays, nil
	}
	if !changes || p.Scale == 0 && p.SameNormalization(preprocess.Settings{}) {
		return Seen, nil
	}
	norm, err := p.Normalizer(shape, false)
	if err != nil {
		return Seen, err
	}
	r := rangeOf(x, product(shape))
	dark := make([]float32, product(shape)) // the pixels that normalise to 0
	norm.Undo(dark)
	white := float32(1)
	if p.Levels() {
		white = 255
	}
	const (
		overshoot = 0.001 // share of pixels that a bicubic filter may put outside [0, 1]
		erased    = 0.02  // share of values that augmentation may have replaced by noise
		black     = 0.02  // up to this mean, normalised values need not be negative
	)
	pixels := r.share(x, func([]float32) {}, 1e-3, white) >= 1-overshoot
	switch {
	case pixels && slices.Min(dark) > black*white:
		return Pixels, nil
	case !pixels && r.share(x, norm.Undo, 0.02, white) >= 1-erased:
		return Seen, nil
	}
	what := fmt.Sprintf("floats from %.4g to %.4g, mean %v, std %v", r.min, r.max, p.Mean, p.Std)
	if white == 1 && r.max > 2 && r.max <= 255 && r.min >= 0 {
		what += ", which look like pixels from 0 to 255: divide them by 255, or save them as uint8"
	}
	return Seen, fmt.Errorf("%s: %w", what, ErrArrays)
}

// perhapsPixels returns a note about floats that are used unchanged although they may be pixels, or "".
func (o Options) perhapsPixels(x numpy.Array, shape []int64) string {
	p := o.Preprocess
	if x.Type.Kind == 'u' || o.Arrays != Auto || p.Arrays != preprocess.Unchanged || p.Mean == nil && p.Std == nil {
		return ""
	}
	r := rangeOf(x, product(shape))
	if white := map[bool]float64{false: 1, true: 255}[p.Levels()]; r.min < 0 || r.max > white {
		return ""
	}
	return fmt.Sprintf("floats from %.3g to %.3g, used unchanged: mean %v and std %v lay beside the checkpoints, and nothing shows that "+
		"training normalised these so. %s does it", r.min, r.max, p.Mean, p.Std, setting.Arrays.With(Pixels.String()))
}

// picturesOnly reports whether the network takes images. It returns true if the network is unknown.
func (o Options) picturesOnly() bool {
	return len(o.Shape) == 0 || Field{Shape: o.Shape, Type: "float32"}.channels(o.Preprocess) > 0
}

// some is a sample of the examples of an array of floats.
type some struct {
	rows     []int
	size     int
	min, max float64
}

// rangeOf samples at most 256 examples, evenly spread over the array.
func rangeOf(x numpy.Array, size int) some {
	s := some{size: size, min: math.Inf(1), max: math.Inf(-1)}
	n := min(256, x.Shape[0])
	for k := range n {
		row := k * x.Shape[0] / n
		s.rows = append(s.rows, row)
		for i := range size {
			v := x.Float64(row*size + i)
			s.min, s.max = min(s.min, v), max(s.max, v)
		}
	}
	return s
}

// share returns the share of values from 0 to white, within a tolerance, after f has changed each example.
func (s some) share(x numpy.Array, f func([]float32), tolerance, white float32) float64 {
	inside, values := 0, make([]float32, s.size)
	for _, row := range s.rows {
		for i := range values {
			values[i] = float32(x.Float64(row*s.size + i))
		}
		f(values)
		for _, v := range values {
			if v >= -tolerance*white && v <= (1+tolerance)*white {
				inside++
			}
		}
	}
	return float64(inside) / float64(max(1, len(s.rows)*s.size))
}
