// Package checkpoints puts the files of one network side by side: it matches
// their tensors, whatever names the exporter of each gave them, and says which
// of them make the flat vector of weights.
//
// [New] compares the checkpoints of a run, [Continue] holds later ones against
// the layout of earlier ones, [Match] pairs the tensors of two files, and [Sum]
// identifies a file.
//
// # Invariants
//
// Elements are compared where they lie in their files, which are never held in
// memory as a whole.
//
// # Concurrency
//
// A [Set] belongs to one goroutine until it is made; then it is only read.
package checkpoints
