// Package weights holds a network's weights as one flat vector.
//
// A [Layout] lists the tensors of a network and their places in the vector. A [Vector] reads any range of it as
// float32, whatever type the tensors are stored in. Vectors are read in blocks, so that nothing in this program needs
// a whole network in memory, let alone twenty of them.
//
// The package also reads and writes the safetensors container (https://github.com/huggingface/safetensors, "Format"),
// the format of posterior and ensemble files. It also maps files into memory.
//
// # Invariants
//
// Offsets of a layout are contiguous per [Role]: the parameters fill [0, Len(Parameter)) without gaps, and so do the
// statistics. All values on disk are little-endian.
//
// # Concurrency
//
// Layouts, views and mappings are read-only after construction and may be used from many goroutines. A
// [SafetensorsWriter] may not. A goroutine that reads a mapped file must run [Guarded], as all goroutines of this
// module do. Otherwise the process ends if another program cuts the file short.
package weights
