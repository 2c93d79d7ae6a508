// Package bnupdate recomputes batch-norm statistics for weights that no training run ever visited: the SWA solution,
// or a member drawn from a posterior.
//
// [NewPlan] rewrites a network. Every batch norm then normalises by its current batch, and outputs the batch's
// statistics. The function [Recompute] runs it once over the training batches, through a [Runner], and combines the
// batches' statistics into running statistics.
//
// The default rule is that of the reference implementation (github.com/wjmaddox/swa_gaussian, swag/utils.py,
// bn_update): momentum b/(n+b) for a batch of b images after n. This amounts to
//
//	running_mean = Σ_k (b_k/N)·μ_k      running_var = Σ_k (b_k/N)·s²_k
//
// with s²_k the variance within batch k, unbiased over its m_k = b_k·H·W elements per channel.
//
// The method [Plan.Check] shows whether the images are those of training, from the statistics that the last checkpoints
// store. The method [Plan.Split] gives the statistics of two halves of the batches, which show how well they are known.
// Layers whose statistics were frozen in training keep them ([Keep]).
//
// # Invariants
//
// Batches are combined in float64 in the order of their numbers, so the result does not depend on the number of
// workers. A statistic that is not finite is an error, never averaged.
//
// # Concurrency
//
// A [Plan] is read-only and may be used from many goroutines.
package bnupdate
