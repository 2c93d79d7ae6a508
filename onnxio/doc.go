// Package onnxio reads and writes ONNX models. It never copies a tensor to read it.
//
// [Open] maps a file and reads its protobuf wire format (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). For
// each tensor it records the byte range of the elements. All bytes that are not edited are written back verbatim. So
// a model whose weights are unchanged is written byte for byte as it was, including unknown fields and the order of
// fields. Decoding and re-encoding the protobuf would not do that.
//
// A layout says which tensors form the flat vector of weights. Package checkpoints makes the layout of several
// checkpoints. [Model.Vector] reads a model's vector, and an [Edit] changes the graph. A [Template] is a model whose
// weights were cut out and can be filled in again.
//
// # Invariants
//
// A file is untrusted input. Every length is checked before it is used, and nesting and item counts are bounded. No
// allocation depends on a size that the file merely claims.
//
// # Concurrency
//
// A [Model] and a [Template] are read-only and may be used from many goroutines. An [Edit] may not.
package onnxio
