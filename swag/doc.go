// Package swag is the SWAG posterior of Maddox et al., "A Simple Baseline for
// Bayesian Uncertainty in Deep Learning" (NeurIPS 2019): a Gaussian over a
// network's weights, read off the iterates of SGD.
//
// [Fit] collects the moments and the low-rank deviations of a set of iterates
// (Algorithm 1, left column) and writes them as a posterior file; [Open] reads one;
// a [Sampler] draws members from it (equation 1):
//
//	θ̃ = θ_SWA + √α·( Σ_diag^½·z1 + D̂·z2/√(K−1) ),  z1 ~ N(0, I_d), z2 ~ N(0, I_K)
//
// Files and vectors are read block by block: memory does not grow with the
// number of weights. What a fit samples of the iterates' [Trajectory] is judged by
// package trajectory; the directions in which a posterior varies most (section 4)
// are those of package geometry, which reads it by [Reduce].
//
// The scale α multiplies the covariance. It is ½ in the paper's SWAG, 1 with
// the diagonal alone (SWAG-Diagonal), and 0 gives θ_SWA itself.
//
// # Invariants
//
// Moments run in float64 by Welford's recurrence, so that a standard deviation
// of 1e-4 around a mean of 1 is right to eight digits where the reference's
// float32 moments lose it. A fit does not depend on the block size or the number
// of workers, bit for bit, nor on whether it was done at once or continued. A
// draw is a pure function of (posterior, seed, member, scale, covariance, rank): the
// number of workers, the order of blocks and the other members drawn do not
// matter, and no product is left open to fusing, so that it should not depend on
// the processor either.
//
// Batch-norm statistics are never part of the posterior.
//
// # Concurrency
//
// A [Posterior] and a [Sampler] may be used from many goroutines.
package swag
