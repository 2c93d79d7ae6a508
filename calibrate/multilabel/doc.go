// Package multilabel measures how far the probabilities of independent labels can be trusted, and repairs them. An
// example may have any number of the labels.
//
// [Evaluate] computes the scores of [Predictions]: negative log-likelihood, Brier score, calibration error over all
// labels and for each label, mean average precision and AUROC. A label that is [Unknown] for an example is left out
// everywhere. Some scores need examples with and without the label. They leave out degenerate labels, which have only
// one of the two.
//
// An ensemble's probability of a label is the mean of its members' sigmoids. Its entropy −p log p − (1−p) log(1−p) is
// [PredictiveEntropy]. The part of the entropy that comes from disagreement between members is [MutualInformation]
// (Houlsby et al. 2011, equation 2). Both are for each label. The function [Sums] gives them for each example,
// because entropies of independent labels add up.
//
// A [Scaler] repairs probabilities: one temperature for all labels, one for each, or Platt's p = σ(a·z + b) for each
// (Platt 1999). It takes log-odds z = log p/(1−p), which [LogOdds] computes from averaged probabilities.
//
// # Invariants
//
//   - Matrices are row-major: n examples × labels. Rows and labels are counted from 0, also in errors and warnings.
//   - Logarithms are natural: losses and entropies are in nats. A loss is the mean over all known labels of all
//     examples, never a sum.
//   - A probability is never clipped. If an example's label has probability 0, or an absent label has probability 1,
//     the loss is +Inf, and [Evaluate] reports it.
//   - Scores that need examples with and without a label are NaN for a degenerate label, and no mean includes them.
//   - Slices whose lengths do not match are programming errors: they panic with a constant text. Bad values in
//     well-shaped data are returned as errors.
//
// # Concurrency
//
// The package has no state. Any function may be called from several goroutines at once.
package multilabel
