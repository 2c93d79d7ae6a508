// Package geometry is the shape of a posterior's covariance: the directions in
// which it is largest, points along them, and where the iterates of SGD are (Maddox
// et al. 2019, section 4).
//
// [New] reads a posterior once. [Geometry.Direction] and [Geometry.Point] are
// vectors whose weights are computed when they are read, and [Geometry.Positions]
// are the iterates' coordinates.
//
// # Invariants
//
// Sums over weights are taken in blocks and in their order, so that the number of
// workers does not change a bit. Memory does not grow with the number of weights.
//
// # Concurrency
//
// A [Geometry] and its vectors may be used from many goroutines, as long as the
// posterior is open.
package geometry
