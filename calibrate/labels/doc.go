// Package labels measures how far the probabilities of independent labels can be
// trusted, each of which an example may have or not, and repairs them.
//
// [Evaluate] gives the scores of [Predictions]: negative log-likelihood, Brier score,
// calibration error over all labels and label by label, mean average precision and
// AUROC. A label that an example is not known to have or not, [Unknown], is left out
// everywhere. Scores that need both values leave out a label that has but one, a
// degenerate label.
//
// The probability of a label by an ensemble is the mean of its members' sigmoids.
// [PredictiveEntropy] is its entropy −p log p − (1−p) log(1−p), and [MutualInformation]
// what of that comes from members disagreeing (Houlsby et al. 2011, equation 2), each
// for a label, or by [Sums] for an example: entropies of independent labels add up.
//
// A [Scaler] repairs probabilities: one temperature for all labels, one for each, or
// Platt's p = σ(a·z + b) for each (Platt 1999). It takes log-odds z = log p/(1−p),
// which [LogOdds] makes of averaged probabilities.
//
// # Invariants
//
//   - Matrices are row-major: n examples × labels. Rows and labels are counted from 0,
//     also in errors and warnings.
//   - Logarithms are natural: losses and entropies are in nats. A loss is the mean over
//     all known labels of all examples, never a sum.
//   - A probability is never clipped. If a label that is there has probability 0, or
//     one that is not has 1, the loss is +Inf, and [Evaluate] says so.
//   - A score of a degenerate label that needs both values is NaN, and in no mean.
//   - Slices that disagree in length are mistakes of the programmer: they panic with a
//     constant text. Bad values in well-shaped data are returned as errors.
//   - The argument dst comes first, is overwritten and is returned; nil allocates a new
//     slice. It may be the same slice as an input.
//
// # Concurrency
//
// The package has no state. Any function may be called from several goroutines at
// once, as long as no two of them write to the same dst.
package labels
