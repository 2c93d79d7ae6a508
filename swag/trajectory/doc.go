// Package trajectory says whether the iterates of SGD are ones that SWAG can
// describe: whether they move, around one centre, often enough, and in which order
// they came.
//
// [NewHealth] reads the trajectory that a fit has sampled, and [Health.Verdict]
// puts into words what is wrong with it. A posterior keeps the health of its own:
// give [Describe] to the fit, and [Of] returns it. [Steps] looks at iterates that
// are no posterior yet.
//
// # Invariants
//
// Health depends on nothing but the [swag.Trajectory], and all but the frozen
// weights and the spectrum on nothing but the distances between iterates. No
// number in it is NaN or infinite: JSON has no word for these.
//
// # Concurrency
//
// Functions have no state, and a [Health] is only read.
package trajectory
