// Package detect measures how well a score separates examples of two kinds, and chooses thresholds.
//
// A score, such as the entropy of averaged predictions, may detect examples of another domain. [AUROC], [AUPR], [FPRAt] and
// [SymmetrizedKL] measure how well it does. [AUROCInterval] and [AUROCDifference] give intervals. [FitMahalanobis] and
// [NeighbourDistances] are such scores, from the features of a network.
//
// A threshold decides between two classes by the score of class 1. [Decide] counts its decisions, a [Criterion] chooses it,
// and [OperatingPoints] lists all thresholds.
//
// Slices of unequal length and options out of their range are programming errors. They panic with a constant text.
// The package has no state. Any function may be called from several goroutines at once.
package detect
