// Package calibrate measures how far predicted class probabilities can be
// trusted, and repairs them.
//
// [Evaluate] gives the scores of a set of [Predictions]: accuracy, negative
// log-likelihood, Brier score, expected calibration error in several ways, the
// area under the risk–coverage curve, and the size of conformal sets of classes.
// [Reliability] and [RiskCoverage] are for plotting, [FitAPS] for sets of classes
// that hold the true one with a promised probability.
//
// A [Scaler] repairs probabilities by a temperature or by vector scaling (Guo et al.
// 2017, section 4.2): [Scaler.Fit] fits on images of their own, [Scaler.CrossFit] on
// those at hand without letting them see their own labels (Ashukha et al. 2020), and
// [Scaler.CrossFits] says what that is worth over several random splits.
//
// [AUROC], [AUPR], [FPRAt] and [SymmetrizedKL] judge a score, such as the entropy
// of averaged predictions, by how well it tells images of another domain.
// The same scores, of class 1 of two, are decided by a threshold: [Decide] counts, a
// [Criterion] chooses one, and [OperatingPoints] are all there are.
//
// [PairedBootstrap] and [AUROCDifference] compare two methods on the same images;
// [NewDifference] does so where random draws, measured by [Jackknife] and [Replicated], and
// temperatures, fitted anew by [Tempered], have a part in it, and [Holm] looks at several
// such together. [Choose] picks one of several settings and says what the choice is worth, and
// [NewMonteCarloError] says how far an average over few members is from that over
// all.
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
