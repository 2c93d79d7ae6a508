// Package ort runs ONNX models with ONNX Runtime. No other package imports onnxruntime_go. This package hides the
// traps of that binding: the garbage collector can free inputs during a run, and missing tensors cause panics. The
// binding also cannot allocate float16 and rank-0 outputs, and its errors have several lines.
//
// [Provider.Install] fetches the pinned ONNX Runtime once, [Provider.Find] finds it, and [Provider.Open] loads it into
// the process. The methods [Runtime.NewSession] and [Runtime.NewFilledSession] make a [Session]. Many goroutines may
// call [Session.Run].
//
// # Invariants
//
//   - A library that is missing, damaged, of another architecture, or older than [MinVersion] gives a [*LibraryError].
//     It never crashes the process.
//   - A library of the user's cache is verified before each use: SHA-256, owner, rights. The linker opens the verified
//     file, not what its path names by then.
//   - Names, types, ranks and fixed dimensions of inputs are checked before the C code sees them. The error names the
//     tensor.
//   - Inputs are only read, and only until Run returns. Outputs are Go memory that the caller owns. Runs share nothing.
//   - External data is read only from the folder that NewFilledSession writes and removes, never from the working
//     directory.
//   - Sessions use at most the memory of [Runtime.Limit], also while they load. The [*MemoryError] names the node that
//     needs more.
//   - Errors are one line, without locations in the sources of ONNX Runtime.
//   - ONNX Runtime's telemetry is off: it sends nothing and leaves no file behind.
//   - Neither the package nor ONNX Runtime's log writes to standard output or standard error.
//
// # Concurrency
//
// All functions and methods may be called from many goroutines at once. A process has one ONNX Runtime. Opening the
// same library again returns the same [Runtime], and it stays loaded until the process ends.
package ort
