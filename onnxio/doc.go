// Package onnxio reads and writes ONNX models without ever copying a tensor to
// look at it.
//
// [Open] maps a file and walks its protobuf wire format
// (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto), recording for
// each tensor the byte range of its elements. All bytes that are not
// edited are written back verbatim, so a model whose weights are unchanged
// comes out byte-identical, unknown fields and field order included; a decoded
// and re-encoded protobuf would not.
//
// A layout says which tensors make the flat vector of weights: that of several
// checkpoints comes from package checkpoints. [Model.Vector] reads a model's, an
// [Edit] changes the graph, and a [Template] is a model whose weights were cut out
// and can be filled in again.
//
// # Invariants
//
// A file is untrusted input: every length is checked before it is used, nesting
// and item counts are bounded, and nothing is allocated by a size that the
// file merely claims.
//
// # Concurrency
//
// A [Model] and a [Template] are read-only and may be used from many
// goroutines. An [Edit] may not.
package onnxio
