// Package batchnorm recomputes the batch-norm statistics of networks, by running them on training batches.
//
// [Training] is the data. [ChooseSampleSize] makes it ready for the members of networks: it compares the data with the
// statistics of the checkpoints, and chooses the number of images. [Record] holds the facts about the statistics.
// [Recompute] makes one pass, for given weights. Package bnupdate computes the statistics of a batch, and combines
// batches into running statistics.
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
