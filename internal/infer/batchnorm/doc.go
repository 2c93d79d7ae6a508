// Package batchnorm recomputes the batch-norm statistics of networks, by running them on training batches.
//
// [Training] is the data. [ChooseSampleSize] makes it ready for the members of networks. It compares the data with the
// statistics that the checkpoints store, and chooses how many images are enough. [Record] holds what is then known
// about the statistics. [Recompute] makes one pass, for given weights. Package bnupdate computes the statistics of a
// batch, and combines batches into running statistics.
//
// # Invariants
//
// The same weights, data and order give the same statistics, bit for bit, for any number of threads. Settled data
// gives members statistics that are as good as those of all images, within [MaxLoss].
//
// # Concurrency
//
// Functions use as many goroutines as the engine has workers, and may be called from several. A [Training] is
// read-only.
package batchnorm
