package regression_test

import (
	"fmt"
	"math"

	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// Three members predict the price of a house, in thousands, and the noise in it.
func Example() {
	prices := regression.Mixture{Means: []float64{210, 225, 240}, Variances: []float64{100, 144, 121}}
	moments := prices.Moments()
	low, high := prices.Interval(0.95)
	fmt.Printf("%.0f ± %.1f: variance %.1f² of noise, %.1f² of members; 95 %% from %.0f to %.0f\n",
		moments.Mean, moments.Std(), math.Sqrt(moments.Aleatoric), math.Sqrt(moments.Epistemic), low, high)

	score := prices.Score(250)
	fmt.Printf("sold for 250: log-likelihood %.3f, of the Gaussian %.3f; CRPS %.2f\n",
		score.Mixture.LogLikelihood, score.Gaussian.LogLikelihood, score.Mixture.CRPS)
	// Output:
	// 225 ± 16.5: variance 11.0² of noise, 12.2² of members; 95 % from 195 to 256
	// sold for 250: log-likelihood -4.681, of the Gaussian -4.872; CRPS 16.36
}

// Errors are twice as large as the network says: its variances are four times too small.
func ExampleFitVarianceScaling() {
	y := []float64{2, -2, 4, -4}
	means, variances := []float64{0, 0, 0, 0}, []float64{1, 1, 4, 4}
	s, err := regression.FitVarianceScaling(y, means, variances)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("s² = %.1f, log-likelihood %.3f before and %.3f after\n", s.Factor, s.Before, s.After)
	// Output:
	// s² = 4.0, log-likelihood -3.266 before and -2.459 after
}
