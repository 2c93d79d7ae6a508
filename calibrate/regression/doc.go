// Package regression measures how far predicted numbers and their uncertainties can be trusted, and repairs the
// uncertainties.
//
// S members predict a number as a [Mixture] of Gaussians N(μ_s, v_s), with equal weights by default. The mixture's
// density, distribution function, quantiles and CRPS need all members of one example at a time. Its [Moments]
//
//	mean μ* = mean μ_s,   aleatoric = mean v_s,   epistemic = mean μ_s² − μ*²
//
// do not: [MomentsOf] computes them from three sums. The SWAG paper
// evaluates the [Gaussian] with these moments (Maddox et al. 2019, appendix on regression). Results include both, by
// name.
//
// [VarianceHead] converts the output of a network to variances, and [Units] convert between the units of training and
// those of the user. If networks predict no variance, [FitMixtureNoise] estimates it, and
// [FitMomentNoise] does so from moments alone.
//
// Scores compare predictions with true values: [Mixture.Score] scores one prediction, and [Evaluate] many. They
// include the log-likelihood, RMSE, MAE, CRPS (Grimit et al. 2006), and coverage and width of 95 % intervals. They
// also include the ENCE (Levi et al. 2019) and the histogram of PIT values.
//
// [FitVarianceScaling] is the equivalent of a temperature for regression, and [FitIsotonic] recalibrates the
// distribution function (Kuleshov et al. 2018).
//
// # Invariants
//
//   - Variances are positive and finite, in the square of the target's units. [VarianceHead.Variance] or [Mixture.Check]
//     checks the output of a network; the other functions do not check again.
//   - Logarithms are natural: log-likelihoods are in nats, of the density in the target's units. A log-likelihood of
//     many examples is their mean, never their sum.
//   - Matrices are row-major: n examples × targets, or n examples × members. Rows are counted from 0, also in errors.
//   - Slices that are empty or whose lengths do not match, and levels out of their range, are programming errors: they
//     panic with a constant text. Bad values in well-shaped data are returned as errors.
//
// # Concurrency
//
// The package has no state. Any function may be called from several goroutines at once, as long as no two of them
// write to the same destination.
package regression
