// Package geometry describes the shape of a posterior's covariance (Maddox et al. 2019, section 4). It has the
// directions of greatest variance, points along them, and the positions of SGD's iterates.
//
// [New] reads a posterior once. The weights of [Geometry.Direction] and [Geometry.Point] are computed when they are
// read. The method [Geometry.Positions] returns the iterates' coordinates.
//
// # Invariants
//
// Sums over weights are taken in blocks and in order, so the number of workers does not change a bit. Memory does not
// grow with the number of weights.
//
// # Concurrency
//
// A [Geometry] and its vectors may be used from many goroutines, as long as the posterior is open.
package geometry
