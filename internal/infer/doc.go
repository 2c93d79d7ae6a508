// Package infer runs networks over data.
//
// A [Graph] is what models that differ in weights only have in common. A [Network]
// is a posterior's graph ready to be filled with weights, and a [Model] is a network
// that has them. An [Engine] runs one model over data ([Engine.Predict]); [Sums] keeps
// what averaging needs, so that memory does not grow with the number of models. Batch-norm
// statistics are recomputed by package batchnorm.
//
// A [Scorer] runs any number of models over any number of examples. It plans by
// the memory and the threads at hand, and hands on what the models say as one
// [Chunk] of examples after the other. What scores mean is told by package task.
//
// # Invariants
//
// Models are averaged by their outcomes, such as probabilities, in float64 and in
// the order of their numbers (Bayesian model averaging, section 3.5 of Maddox et
// al. 2019). An outcome that is not finite is an error that names model and
// example; it is never averaged. No bit of a result depends on how many threads
// there are, on the memory at hand, or on the chunk that a run begins with.
//
// # Concurrency
//
// A [Network] is read-only. The methods of [Engine] use as many goroutines as it
// has workers, and may themselves be called from several. Those of a [Scorer] are
// for one goroutine at a time.
package infer
