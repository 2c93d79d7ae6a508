// Package checkpoints compares the files of one network. It matches their tensors, whatever names the exporter of
// each file gave them. It decides which tensors form the flat vector of weights.
//
// [OpenRun] does all that comes before [swag.Fit]. It calls three functions. [Open] opens files. [New] compares the
// checkpoints of a run. [Set.Input] makes the input of the fit.
//
// [Continue] checks later checkpoints against the layout of earlier ones. [Match] pairs the tensors of two files, and
// [Sum] identifies a file.
//
// # Invariants
//
// Elements are compared in their files, which are never held in memory as a whole.
//
// # Concurrency
//
// A [Set] belongs to one goroutine until it is complete; then it is read-only.
package checkpoints
