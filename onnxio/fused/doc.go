// Package fused writes many members of one or several networks as one ONNX model.
//
// The nodes of the members follow each other, each member under its own names. For example, conv1.weight of member 7
// becomes member-007/conv1.weight. Members share the input, constants, batch-norm statistics that are equal in all of
// them, and what nodes compute from these alone. Operators that average the members come last ([Model.Op]). The caller
// chooses these operators.
//
// Only operators of the networks' own opset are used. A runtime needs no special construct, and keeps every
// optimisation that it has for a single network.
//
// Nothing here runs the model. Some models end the process of an ONNX Runtime that has a fault. A program that tries a model should do
// so in a process of its own, as swagwrap export does.
//
// # Storage
//
// With [Int8] a matrix of weights is stored as the mean of all members, in float32, and each member's deviation from
// it in int8. The graph adds them by Cast, Mul and Add. Runtimes compute these once, when they load the model, but
// would compute DequantizeLinear in every run. A deviation is off by at most half a step, a 254th of the largest one
// in its row. Vectors, such as biases, and batch-norm statistics are stored whole.
//
// # Invariants
//
// Memory does not grow with the number of members or of their weights. A graph is therefore written twice, once to
// learn its length, because protobuf puts the length first.
//
// # Concurrency
//
// A [Network] does not change. A [Model] is for one goroutine at a time.
package fused
