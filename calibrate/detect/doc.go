// Package detect measures how well a score separates examples of two kinds, and chooses thresholds.
//
// [AUROC], [AUPR], [FPRAt] and [SymmetrizedKL] measure how well a score, such as the entropy of averaged predictions,
// detects examples of another domain. [AUROCInterval] and [AUROCDifference] give intervals. [FitMahalanobis] and
// [NeighbourDistances] are such scores, from the features of a network.
//
// Scores of class 1 of two classes are decided by a threshold: [Decide] counts its decisions, a [Criterion] chooses it, and
// [OperatingPoints] lists all of them.
//
// Slices whose lengths do not match and options out of their range are programming errors: they panic with a constant
// text. The package has no state. Any function may be called from several goroutines at once.
package detect
