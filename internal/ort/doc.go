// Package ort runs ONNX models on ONNX Runtime. It is the only package that
// imports onnxruntime_go, and it hides that binding's traps: inputs that the
// garbage collector frees during a run, panics on missing tensors, float16 and
// rank-0 outputs that cannot be allocated, and errors of several lines.
//
// [Install] fetches the pinned ONNX Runtime once, [Locate] finds it, [Open]
// loads it into the process, and [Runtime.NewSession] or
// [Runtime.NewFilledSession] makes a [Session] that [Session.Run] may call from
// many goroutines.
//
// # Invariants
//
//   - A library that is missing, damaged, of another architecture, or older
//     than [MinVersion] is a [*LibraryError]; it never takes the process down.
//   - Names, types, ranks and fixed dimensions of the inputs are checked before
//     any C code sees them; the error names the tensor.
//   - Inputs are only read, and only until Run returns. Outputs are Go memory
//     that the caller owns. Nothing is shared between two runs.
//   - External data is read from the folder that NewFilledSession writes and
//     removes, and nowhere else; in particular not from the working directory.
//   - Sessions take no more memory than [Runtime.Limit] says, loading included; the
//     [*MemoryError] names the node that asks for it.
//   - Errors are one line, without places in the sources of ONNX Runtime.
//   - ONNX Runtime's telemetry is off: it sends nothing, and leaves no file
//     behind.
//   - The package never writes to standard output or standard error, and neither
//     does ONNX Runtime's log.
//
// # Concurrency
//
// All functions and methods may be called from many goroutines at once. A
// process has one ONNX Runtime: opening the same library again returns the same
// [Runtime], and it stays loaded until the process ends.
package ort
