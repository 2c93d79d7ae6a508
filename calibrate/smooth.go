package calibrate

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// smoothCells is the number of cells of a confidence in [SmoothECE]. A residual is shared between the two nearest edges.
// At a bandwidth of 0.005 this changes the result by less than 1e-5.
const smoothCells = 2048

// SmoothECE returns the smooth calibration error smECE of top labels, from 0 to 1 (Błasiok and Nakkiran 2023).
// Unlike [ECE] it has no bins. At the bandwidth σ the error is
//
//	∫ |1/n Σ_i K_σ(t, f_i)·(f_i − y_i)| dt over [0, 1]
//
// with the confidences f and the outcomes y, 0 or 1. K_σ is the Gaussian kernel, reflected at 0 and 1. The result is the
// σ that equals its own error, and there is one, because the error falls with σ.
func SmoothECE(g []TopLabel) float64 {
	r := newResiduals()
	for _, x := range g {
		right := 0.0
		if x.Correct {
			right = 1
		}
		r.add(x.Confidence, (x.Confidence-right)/float64(len(g)))
	}
	return smoothECE(r)
}

// BinnedSmoothECE is [SmoothECE] of predictions that are counted in many narrow bins. A bin counts at its mean confidence. With
// bins of width 0.0004 this changes the result by less than 1e-5 at a bandwidth of 0.005.
func BinnedSmoothECE(bins []ReliabilityBin) float64 {
	n := 0.0
	for _, b := range bins {
		n += float64(b.Count)
	}
	r := newResiduals()
	for _, b := range bins {
		r.add(b.Confidence, float64(b.Count)/n*(b.Confidence-b.Accuracy))
	}
	return smoothECE(r)
}

// residuals are shared between the edges of the cells.
type residuals []float64

func newResiduals() residuals { return make(residuals, smoothCells+1) }

func (r residuals) add(confidence, residual float64) {
	cell := min(int(confidence*smoothCells), smoothCells-1)
	share := confidence*smoothCells - float64(cell)
	r[cell] += (1 - share) * residual
	r[cell+1] += share * residual
}

func smoothECE(residuals residuals) float64 {
	// The reflected Gaussian is the heat kernel of the interval: it multiplies the cosine k by exp(−(kπσ)²/2).
	dct := fourier.NewDCT(smoothCells + 1)
	residuals[0] *= 2 // the transform counts both ends half
	residuals[smoothCells] *= 2
	cosines := dct.Transform(nil, residuals)
	smooth := make([]float64, smoothCells+1)
	low, high := 0.0, 1.0
	for high-low > 1e-7 {
		sigma, sum := (low+high)/2, 0.0
		for k, a := range cosines {
			w := math.Pi * sigma * float64(k)
			smooth[k] = a / 2 * math.Exp(-w*w/2)
		}
		dct.Transform(smooth, smooth)
		for t, v := range smooth {
			if t == 0 || t == smoothCells {
				v /= 2
			}
			sum += math.Abs(v)
		}
		if sum/smoothCells > sigma {
			low = sigma
		} else {
			high = sigma
		}
	}
	return high
}
