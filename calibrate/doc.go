// Package calibrate measures how far predicted class probabilities can be
// trusted, and repairs them with one temperature.
//
// It computes accuracy, negative log-likelihood, Brier score and expected
// calibration error of a set of [Predictions], reliability bins for plotting,
// the entropy and mutual information of averaged predictions, temperature
// scaling (Guo et al. 2017, section 4.2) with a cross-fitted score (Ashukha et
// al. 2020), and paired bootstrap intervals for comparing two methods on the
// same images.
//
// The functions take arrays and return numbers. To average the members of an
// ensemble, average their probabilities, not their logits, and pass the average
// here; its temperature is fitted on [LogProbs] of the average.
//
// # Invariants
//
//   - Matrices are row-major: n images × Classes columns in one slice. Rows are
//     counted from 0, also in errors and warnings.
//   - Logarithms are natural: losses and entropies are in nats. A loss of many
//     images is their mean, never their sum.
//   - A probability is never clipped or renormalised. If the true class has
//     probability 0, the loss is +Inf, and [Evaluate] says so.
//   - Slices that disagree in length, and options out of their range, are
//     mistakes of the programmer: they panic with a constant text. Bad values in
//     well-shaped data are returned as errors.
//   - The argument dst comes first, is overwritten and is returned. Where dst is
//     nil a new slice is allocated. It may be the same slice as the input only
//     where the function says so. No other argument is written to.
//   - Results depend on the arguments alone. Whatever is random is drawn from
//     the seed passed in.
//
// # Concurrency
//
// The package has no state. Any function may be called from several goroutines
// at once, as long as no two of them write to the same dst.
package calibrate
