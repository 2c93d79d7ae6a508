// Package infer runs networks over data.
//
// A [Graph] is the common part of models that differ only in weights. A [Network] is a posterior's graph ready to be
// filled with weights, and a [Model] is a network with weights. An [Engine] computes, and never changes. A [Run] of it
// runs one model over data ([Run.Predict]). [Sums] keeps the sums for averaging, so that memory does not grow with the number of models.
// Package batchnorm recomputes batch-norm statistics.
//
// A [Scorer] runs any number of models over any number of examples. It plans for the available memory and threads,
// and delivers the models' results as one [Chunk] of examples after the other. Package task says what scores mean.
//
// # Invariants
//
// Models are averaged by their outcomes, such as probabilities, in float64 and in the order of their numbers
// (Bayesian model averaging, section 3.5 of Maddox et al. 2019). An outcome that is not finite is an error that names
// model and example. It is never averaged. No bit of a result depends on the number of threads, on the available
// memory, or on the chunk that a run begins with.
//
// # Concurrency
//
// A [Network] is read-only. The methods of [Engine] and [Run] use as many goroutines as it has workers, and may be called from
// several goroutines. The methods of a [Scorer] are for one goroutine at a time.
package infer
