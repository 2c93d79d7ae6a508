package preprocess

import (
	"fmt"
	"math"
	"slices"
)

// A UnitsError is returned for a mean and a standard deviation that fit neither pixels from 0 to 1 nor pixels from 0 to 255.
type UnitsError struct {
	Mean, Std []float64
	Cause     string
}

func (e *UnitsError) Error() string {
	return fmt.Sprintf("mean %v, std %v: %s", e.Mean, e.Std, e.Cause)
}

// Hint says how to write them.
func (e *UnitsError) Hint() string {
	return `say both for pixels from 0 to 1, such as "mean=0.485,0.456,0.406 std=0.229,0.224,0.225", or both for pixels from 0 to 255, such as "mean=123.675,116.28,103.53 std=58.395,57.12,57.375". std=1 leaves the spread of 0 to 255`
}

// mostStd is above the standard deviation of any pixels from 0 to 1, and above the 1 that leaves them.
const mostStd = 2

// InUnits returns settings for 8-bit pixels. Pixels from 0 to 1 have no mean above 1. So such a mean, and its standard
// deviation, are for pixels from 0 to 255, as in MMDetection and Detectron2: then Scale becomes 1, and note says so. A
// negative mean is for values of another kind, and nothing is known of its units. InUnits returns a [*UnitsError] if the two
// differ in their units.
func (s Settings) InUnits() (_ Settings, note string, err error) {
	mean, std := s.perChannel(s.Mean, 0), s.perChannel(s.Std, 1)
	wrong := func(cause string) (Settings, string, error) {
		return s, "", &UnitsError{s.Mean, s.Std, cause}
	}
	most, least := slices.Max(mean), slices.Min(mean)
	levels := most > 1
	switch {
	case least < 0, !levels && slices.Max(std) <= mostStd, s.white() > 1.5:
		return s, "", nil
	case s.Scale != 0:
		return wrong(fmt.Sprintf("pixels are multiplied by %.4g, so they are from 0 to %.4g, and the mean or the standard deviation is "+
			"not", s.Scale, s.white()))
	case !levels && most > 0:
		return wrong("the mean is for pixels from 0 to 1, and the standard deviation is not")
	case most > 255:
		return wrong("pixels are from 0 to 255 at most")
	case s.Std == nil:
		return wrong("the mean is for pixels from 0 to 255, and there is no standard deviation")
	case slices.Min(std) < 1:
		return wrong("the mean is for pixels from 0 to 255, and the standard deviation is not")
	case slices.ContainsFunc(mean, func(m float64) bool { return m > 0 && m < 1 }):
		return wrong("some values of the mean are for pixels from 0 to 1, and some for pixels from 0 to 255")
	}
	s.Scale = 1
	return s, fmt.Sprintf("mean %v and std %v are for pixels from 0 to 255, so pixels are not divided by 255", s.Mean, s.Std), nil
}

// Levels reports whether mean and standard deviation are for pixels from 0 to 255.
func (s Settings) Levels() bool {
	if inUnits, _, err := s.InUnits(); err == nil {
		s = inUnits
	}
	mean := s.perChannel(s.Mean, 0)
	return s.Scale == 1 && slices.Min(mean) >= 0 && (slices.Max(mean) > 1 || slices.Max(s.perChannel(s.Std, 1)) > mostStd)
}

// Reversed reports whether the mean is that of ImageNet as blue, green, red, which other programs write for such networks.
func (s Settings) Reversed() bool {
	mean, _ := s.Unit()
	if len(mean) != len(imagenetMean) {
		return false
	}
	for i, m := range mean {
		const rounding = 0.003 // Caffe's mean is 103.939, 116.779, 123.68
		if math.Abs(m-imagenetMean[len(mean)-1-i]) > rounding {
			return false
		}
	}
	return true
}

// white returns what a white pixel becomes before mean and standard deviation: 1 for pixels from 0 to 1.
func (s Settings) white() float64 { return s.scale() * levels }

// top returns the value of a white pixel for which mean and standard deviation are.
func (s Settings) top() float64 {
	if s.Levels() {
		return levels
	}
	return 1
}

// Unit returns mean and standard deviation for pixels from 0 to 1. They are nil if the settings have none.
func (s Settings) Unit() (mean, std []float64) {
	return divided(s.Mean, s.top()), divided(s.Std, s.top())
}

// SameNormalization reports whether pixels from 0 to 1 become the same values, up to rounding of the numbers in a file.
func (s Settings) SameNormalization(o Settings) bool {
	const rounding = 1e-3
	near := func(a, b []float64) bool {
		for i := range max(len(a), len(b)) {
			if math.Abs(a[min(i, len(a)-1)]-b[min(i, len(b)-1)]) > rounding {
				return false
			}
		}
		return true
	}
	of := func(s Settings) (mean, std []float64) {
		mean, std = s.Unit()
		return s.perChannel(mean, 0), s.perChannel(std, 1)
	}
	mean, std := of(s)
	oMean, oStd := of(o)
	return near(mean, oMean) && near(std, oStd)
}

func divided(values []float64, by float64) []float64 {
	if by == 1 || values == nil {
		return values
	}
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = v / by
	}
	return out
}
