// Package ensemble runs networks with sampled weights over data.
//
// A [Network] is a posterior's graph ready to be filled with weights. An
// [Engine] recomputes its batch-norm statistics and predicts; [Sums] keeps what
// averaging needs, so that memory does not grow with the number of members. An
// [Ensemble] is the file that holds what makes S members: where the posteriors
// are, the seed, and each member's batch-norm statistics.
//
// # Invariants
//
// Members are averaged by their probabilities, in float64 and in the order of
// their numbers (Bayesian model averaging, section 4.4 of Maddox et al. 2019).
// Where posteriors are mixed the average is Σ w·p with Σ w = 1, and what the
// members disagree about, their mutual information, is H(Σ w·p) − Σ w·H(p).
// An output that is not finite is an error that names member and example;
// it is never averaged.
//
// # Concurrency
//
// A [Network] is read-only. The methods of [Engine] use as many goroutines as
// it has workers, and may themselves be called from several.
package ensemble
