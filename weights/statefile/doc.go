// Package statefile reads the weights in PyTorch's checkpoints, without Python and without running anything that a file
// holds.
//
// [Open] reads the files of torch.save, in the zip format of PyTorch 1.6 and later and in the format before it. It
// also reads safetensors files, and Hugging Face's folders of shards. A [File] lists its state_dicts. A training
// script's file often holds the weights, their moving average and an optimizer. The elements of a [Tensor] stay in
// the mapped file.
//
// # No code is run
//
// A pickle is a program that names functions and calls them. The machine here executes its stack operations and makes
// no calls. Instead of each call that Python would make, it creates a node that keeps the function's name and its
// arguments. Afterwards a few known names, PyTorch's own for rebuilding tensors, get a meaning. The rest of the file
// is skipped. So the package also reads files that torch.load(weights_only=True) refuses: those with an optimizer, a
// configuration or a whole module of classes that are not installed.
//
// # Limits
//
// Files are untrusted. Every length, offset and stride is checked before it is used. The memory for the values of a
// pickle is bounded by the file's size: see budget. If another program cuts an open file short, the next read there
// is a fault. Goroutines that read tensors need [weights.Guarded].
//
// # Concurrency
//
// A File, its state_dicts and their tensors are read-only after Open and may be used from many goroutines, until
// Close.
package statefile
