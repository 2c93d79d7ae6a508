// Package batchnorm recomputes the batch-norm statistics of networks, by running them on
// training batches.
//
// [Training] is the data. [Settle] makes it ready for the members of networks: it holds
// the data against what the checkpoints store, and finds out how many images are enough;
// [Record] says what is known of them afterwards. [Recompute] makes one pass, for given
// weights. What is computed of a batch is told by package bnupdate, and how batches
// become running statistics.
//
// # Invariants
//
// The same weights, data and order give the same statistics, bit for bit, whatever the
// number of threads. Settled data gives members statistics that are as good as those of
// all images within [MaxLoss].
//
// # Concurrency
//
// Functions use as many goroutines as the engine has workers, and may be called from
// several. A [Training] is read-only.
package batchnorm
