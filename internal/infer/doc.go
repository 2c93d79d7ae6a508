// Package ensemble runs networks with sampled weights over data.
//
// A [Network] is a posterior's graph ready to be filled with weights. An
// [Engine] recomputes its batch-norm statistics and predicts; [Sums] keeps what
// averaging needs, so that memory does not grow with the number of members. An
// [Ensemble] is the file that holds what makes S members: where the posteriors
// are, the seed, and each member's batch-norm statistics.
//
// A [Scorer] runs an ensemble over any number of examples, and yields [Row]s.
// [Records] keeps them until all are there, so that a run that was stopped goes
// on where it was; a [Table] writes them as a file.
//
// # Invariants
//
// Members are averaged by their probabilities, in float64 and in the order of
// their numbers (Bayesian model averaging, section 4.4 of Maddox et al. 2019).
// Where posteriors are mixed the average is Σ w·p with Σ w = 1, and what the
// members disagree about, their mutual information, is H(Σ w·p) − Σ w·H(p).
// An output that is not finite is an error that names member and example;
// it is never averaged. No bit of a row depends on how many threads there are,
// on the memory at hand, or on where a run was resumed.
//
// # Concurrency
//
// A [Network] is read-only. The methods of [Engine] use as many goroutines as
// it has workers, and may themselves be called from several.
package infer
