// Package trajectory checks whether SWAG can describe the iterates of SGD. They must move around one centre, there
// must be enough of them, and they must be in training order.
//
// [NewHealth] computes the figures from the trajectory that a fit samples, and [Health.Verdict] lists the problems. A
// posterior stores the health of its trajectory: pass [Describe] to the fit, and [Check] returns it. The function
// [Steps] looks at iterates without a posterior.
//
// # Invariants
//
// Health depends on nothing but the [swag.Trajectory]. All of it except the frozen weights, the spectrum and the offset
// of a given mean depends only on the distances between iterates. No number is NaN or infinite, because JSON cannot represent these.
//
// # Concurrency
//
// Functions have no state, and a [Health] is only read.
package trajectory
