// Package calibrate measures how far predicted class probabilities can be trusted, and repairs them.
//
// [Evaluate] computes the scores of a set of [Predictions]: accuracy, negative log-likelihood, Brier score and
// expected calibration errors. It also computes the area under the risk–coverage curve and the size of conformal
// sets. For plotting use [Reliability] and [RiskCoverage]. The function [FitAPS] makes sets of classes that contain
// the true one with a guaranteed probability.
//
// [FitTemperature] and [FitVectorScaling] repair probabilities (Guo et al. 2017, section 4.2). Fit on separate
// examples, or use [CrossFit]: it fits on the test examples, but never applies a fit to the labels that it used
// (Ashukha et al. 2020). [CrossFits] measures the effect over several random splits.
//
// Package chance has intervals and tests of such scores, and package detect scores for examples of another domain and
// thresholds of two classes.
//
// The functions take arrays and return numbers. For an ensemble, average the members' probabilities, not their
// logits, and pass the average. Fit its temperature on [LogProbs] of the average.
//
// # Invariants
//
//   - Matrices are row-major: n examples × Classes columns in one slice. Rows are counted from 0, also in errors and
//     warnings.
//   - Logarithms are natural: losses and entropies are in nats. A loss of many examples is their mean, never their sum.
//   - A probability is never clipped or renormalised. If the true class has probability 0, the loss is +Inf, and
//     [Evaluate] reports it.
//   - Slices whose lengths do not match and options out of their range are programming errors: they panic
//     with a constant text. Bad values in well-shaped data are returned as errors.
//   - The argument dst comes first, is overwritten and is returned. If dst is nil, a new slice is allocated. It may be
//     the same slice as the input only where the function says so. No other argument is written to.
//   - Results depend on the arguments alone. Random numbers come from the seed that is passed in.
//
// # Concurrency
//
// The package has no state. Any function may be called from several goroutines at once, as long as no two of them
// write to the same dst.
package calibrate
