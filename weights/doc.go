// Package weights holds a network's weights as one flat vector.
//
// A [Layout] lists the tensors of a network and says where each of them lies
// in the vector; a [Vector] reads any stretch of it as float32, whatever type
// the tensors are stored in. Vectors are read in blocks, so that nothing in
// this program needs a whole network in memory, let alone twenty of them.
//
// The package also reads and writes the safetensors container
// (https://github.com/huggingface/safetensors, "Format"), which posterior and
// ensemble files are made of, and maps files into memory.
//
// # Invariants
//
// Offsets of a layout are contiguous per [Role]: the parameters fill
// [0, Len(Parameter)) without gaps, and so do the statistics. All values on
// disk are little-endian.
//
// # Concurrency
//
// Layouts, views and mappings are read-only after construction and may be
// used from many goroutines. A [SafetensorsWriter] may not. A goroutine that
// reads a mapped file runs [Guarded], or ends the process where another program
// cuts the file short; what this module starts does.
package weights
