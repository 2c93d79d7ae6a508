// Package chance measures how much of a mean loss, of a difference of two methods or of a share is chance.
//
// [PairedBootstrap] and [NewDifference] compare two methods on the same examples, and [NewOverRuns] does so over runs of
// training. [NewRefit] measures what the fit of a temperature adds, and [NewDraws] and [Replicated] what other random
// draws would change. For several such comparisons, use [Holm]. [Wilson] and [Family] give intervals of shares and means,
// and [NewMonteCarloError] compares an average over few members with that over infinitely many.
//
// # Invariants
//
//   - Losses are by example, in one order for all methods. Losses of units of chance take the place of those of examples if
//     examples depend on each other.
//   - A statistic is NaN if its mean is not finite. Losses are never clipped.
//   - Slices of unequal length and options out of their range are programming errors. They panic with a constant text.
//   - Results depend on the arguments alone. Random numbers come from the seed that is passed in.
//
// # Concurrency
//
// The package has no state. Any function may be called from several goroutines at once.
package chance
