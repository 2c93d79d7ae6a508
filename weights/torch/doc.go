// Package torch reads the weights in PyTorch's checkpoints, without Python and
// without running anything that a file holds.
//
// [Open] takes what torch.save writes (the zip format of PyTorch 1.6 and
// later, and the one before it), safetensors files, and Hugging Face's folders
// of shards. A [File] lists the state_dicts in it: a training script's file
// often holds the weights and their moving average, beside an optimizer. The
// elements of a [Tensor] stay in the mapped file.
//
// # No code is run
//
// A pickle is a program: it names functions and calls them. The machine here
// executes its stack operations and makes no calls. What Python would call
// becomes a node that keeps the function's name and its arguments; afterwards
// a few known names, PyTorch's own for rebuilding tensors, are given a
// meaning, and whatever else is in the file passes by unread. That also reads
// files that torch.load(weights_only=True) refuses: those with an optimizer, a
// configuration or a whole module of classes that are not installed.
//
// # Limits
//
// Files are untrusted. Every length, offset and stride is checked before it is
// used, and what is kept of a pickle is bounded by the file's size: see
// budget. A file that another program cuts short while it is open is a fault
// where it is read next: goroutines that read tensors need [weights.Guarded].
//
// # Concurrency
//
// A File, its state_dicts and their tensors are read-only after Open and may
// be used from many goroutines, until Close.
package torch
