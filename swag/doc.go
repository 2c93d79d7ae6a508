// Package swag implements the SWAG posterior of Maddox et al., "A Simple Baseline for Bayesian Uncertainty in Deep
// Learning" (NeurIPS 2019). The posterior is a Gaussian over a network's weights, estimated from the iterates of SGD.
//
// [Fit] collects the moments and the low-rank deviations of a set of iterates (Algorithm 1, left column) and writes a
// posterior file. [Open] reads one. A [Sampler] draws members from it (equation 1):
//
//	θ̃ = θ_SWA + √α·( Σ_diag^½·z1 + D̂·z2/√(K−1) ),  z1 ~ N(0, I_d), z2 ~ N(0, I_K)
//
// Files and vectors are read block by block, so memory does not grow with the number of weights. Package trajectory
// judges the [Trajectory], a sample of the iterates that a fit takes. Package geometry finds the directions in which
// a posterior varies most (section 4). It reads the posterior by [Reduce].
//
// The scale α multiplies the covariance. It is ½ in the paper's SWAG and 1 with the diagonal alone (SWAG-Diagonal). A
// scale of 0 gives θ_SWA itself.
//
// # Invariants
//
// Moments are computed in float64 by Welford's recurrence. So a standard deviation of 1e-4 around a mean of 1 is
// right to eight digits. The reference's float32 moments lose it.
//
// A fit has the same bits for every block size and number of workers, and whether it was done at once or continued.
//
// A draw is a pure function of (posterior, seed, member, scale, covariance, rank). The number of workers, the order
// of blocks and the other members drawn do not matter. No product is left open to fusing, so a draw should not depend
// on the processor either.
//
// Batch-norm statistics are never part of the posterior.
//
// # Concurrency
//
// A [Posterior] and a [Sampler] may be used from many goroutines.
package swag
