// Package regression measures how far predicted numbers can be trusted, and
// repairs what is said of their uncertainty.
//
// What S members predict of a number is a [Mixture] of Gaussians N(μ_s, v_s), of
// equal weight unless they have others. Its density, distribution function,
// quantiles and CRPS need all members, one example at a time. Its [Moments]
//
//	mean μ* = mean μ_s,   aleatoric = mean v_s,   epistemic = mean μ_s² − μ*²
//
// do not: they are added up member by member by [Running], or come from three sums by
// [MomentsOf]. The [Gaussian] with these moments is what the SWAG paper judges
// (Maddox et al. 2019, appendix on regression); both are given, and named.
//
// [VarianceHead] turns what a network gives out into variances, and [Units] go
// between the numbers that it was trained on and those of the user. [FitNoise] and
// [FitMixtureNoise] find the variance where networks give none, [FitMomentNoise] from
// moments alone.
//
// [Mixture.Score] says what one prediction is worth beside the true value, and
// [Evaluate] that of many: log-likelihood, RMSE, MAE, CRPS (Grimit et al. 2006),
// coverage and width of 95 % intervals, ENCE (Levi et al. 2019) and the histogram of
// PIT values.
//
// [FitVarianceScaling] is to regression what a temperature is to classes, and
// [FitIsotonic] recalibrates the distribution function (Kuleshov et al. 2018).
//
// # Invariants
//
//   - Variances are positive and finite, in the square of the target's units. What
//     comes from a network is checked by [VarianceHead.Apply] or [Mixture.Check];
//     the other functions rely on it.
//   - Logarithms are natural: log-likelihoods are in nats, of the density in the
//     target's units. One of many examples is their mean, never their sum.
//   - Matrices are row-major: n examples × targets, or n examples × members. Rows
//     are counted from 0, also in errors.
//   - Slices that disagree in length, empty ones, and levels out of their range are
//     mistakes of the programmer: they panic with a constant text. Bad values in
//     well-shaped data are returned as errors.
//
// # Concurrency
//
// The package has no state. Any function may be called from several goroutines at
// once, as long as no two of them write to the same destination.
package regression
