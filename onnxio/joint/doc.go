// Package joint writes many members of one or several networks as one ONNX model.
//
// The members' nodes stand one after the other, each under names of its own:
// everything of member 7 that is called conv1.weight is member-007/conv1.weight
// there. They share the input, and what no member has for itself: constants, and
// batch-norm statistics that are equal in all of them. Operators that average the
// members come behind ([Model.Op]); what they are, the caller knows.
//
// Only operators of the networks' own opset are used, and no construct that a
// runtime must know how to take apart: concatenated nodes keep every optimisation
// that a runtime has for a single network.
//
// # Storage
//
// With [Int8] a matrix of weights is stored as what all members have in common,
// the mean, in float32, and each member's deviation from it in int8. The graph puts
// them together by Cast, Mul and Add, which runtimes compute once, when they load
// the model; DequantizeLinear they would compute in every run. A deviation is off
// by at most half a step, a 254th of the largest one in its row. Vectors, such as
// biases, and batch-norm statistics are stored whole.
//
// # Invariants
//
// Nothing grows with the number of members or of their weights but the files: a
// graph is written twice, once to learn its length, which protobuf has in front.
//
// # Concurrency
//
// A [Network] does not change. A [Model] is for one goroutine at a time.
package joint
