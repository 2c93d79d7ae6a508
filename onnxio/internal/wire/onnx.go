package wire

import "strconv"

// Field numbers of onnx.proto.
const (
	ModelIR, ModelProducer, ModelProducerVersion, ModelDoc, ModelGraph, ModelOpset, ModelMetadata, ModelTraining, ModelFunction = 1, 2, 3,
		6, 7, 8, 14, 20, 25

	OpsetDomain, OpsetVersion = 1, 2

	FunctionName, FunctionNode, FunctionDoc, FunctionDomain, FunctionAttribute, FunctionValueInfo, FunctionMetadata = 1, 7,
		8, 10, 11, 12, 14

	GraphNode, GraphName, GraphInitializer, GraphDoc, GraphInput, GraphOutput                     = 1, 2, 5, 10, 11, 12
	GraphValueInfo, GraphQuantization, GraphSparse, GraphMetadata                                 = 13, 14, 15, 16
	NodeInput, NodeOutput, NodeName, NodeOpType, NodeAttribute, NodeDoc, NodeDomain, NodeMetadata = 1, 2, 3, 4, 5, 6, 7, 9

	AttrName, AttrFloat, AttrInt, AttrTensor, AttrGraph, AttrFloats, AttrInts, AttrGraphs, AttrType = 1, 2, 3, 5, 6, 7, 8, 11, 20
	AttrString, AttrTensors, AttrDoc, AttrReference                                                 = 4, 10, 13, 21
	attrIsFloat, attrIsInt, AttrIsTensor, attrIsInts                                                = 1, 2, 4, 7 // values of AttrType

	TensorDims, TensorType, TensorSegment, TensorFloat, TensorInt32, TensorString, TensorInt64   = 1, 2, 3, 4, 5, 6, 7
	TensorName, TensorRaw, TensorDouble, TensorUint64, TensorDoc, TensorExternal, TensorLocation = 8, 9, 10, 11, 12, 13, 14

	TensorMetadata = 16

	ValueName, ValueType, ValueDoc, ValueMetadata = 1, 2, 3, 4

	TypeSequence, TypeMap, TypeSparse, TypeOptional = 4, 5, 8, 9

	TypeTensor, TensorTypeElem, TensorTypeShape, ShapeDim, DimValue, DimParam = 1, 1, 2, 1, 1, 2

	entryKey, entryValue = 1, 2
)

// Node encodes a node of the default domain as a field of a graph. The attributes are fields of the node.
func Node(op, name string, inputs, outputs []string, attributes ...[]byte) []byte {
	var b []byte
	for _, s := range inputs {
		b = AppendString(b, NodeInput, s)
	}
	for _, s := range outputs {
		b = AppendString(b, NodeOutput, s)
	}
	if name != "" {
		b = AppendString(b, NodeName, name)
	}
	b = AppendString(b, NodeOpType, op)
	for _, a := range attributes {
		b = append(b, a...)
	}
	return AppendBytes(nil, GraphNode, b)
}

// Int encodes an attribute that is an integer as a field of a node.
func Int(name string, v int64) []byte {
	return attribute(name, AppendVarint(nil, AttrInt, uint64(v)), attrIsInt)
}

// Ints encodes an attribute that is a list of integers as a field of a node.
func Ints(name string, list []int64) []byte {
	var value []byte
	for _, v := range list {
		value = AppendVarint(value, AttrInts, uint64(v))
	}
	return attribute(name, value, attrIsInts)
}

// Float encodes an attribute that is a float as a field of a node.
func Float(name string, v float32) []byte {
	return attribute(name, AppendFloat(nil, AttrFloat, v), attrIsFloat)
}

// Tensor encodes an attribute that is a tensor, itself encoded, as a field of a node.
func Tensor(name string, tensor []byte) []byte {
	return attribute(name, AppendBytes(nil, AttrTensor, tensor), AttrIsTensor)
}

// attribute encodes an AttributeProto. value is the encoded field of its kind.
func attribute(name string, value []byte, kind uint64) []byte {
	body := append(AppendString(nil, AttrName, name), value...)
	return AppendBytes(nil, NodeAttribute, AppendVarint(body, AttrType, kind))
}

// TensorHeader encodes a tensor without its elements. An empty name is left out.
func TensorHeader[E ~int32](name string, elem E, shape []int64) []byte {
	var b []byte
	for _, d := range shape {
		b = AppendVarint(b, TensorDims, uint64(d))
	}
	b = AppendVarint(b, TensorType, uint64(elem))
	if name != "" {
		b = AppendString(b, TensorName, name)
	}
	return b
}

// Initializer encodes a tensor as a field of a graph. raw holds its elements in the layout of memory.
func Initializer[E ~int32](name string, elem E, shape []int64, raw []byte) []byte {
	return AppendBytes(nil, GraphInitializer, AppendBytes(TensorHeader(name, elem, shape), TensorRaw, raw))
}

// Value encodes the body of a ValueInfoProto of a tensor. A dimension below 0 is free, and has its name in dims, if
// any. Without a shape, the runtime infers it.
func Value[E ~int32](name string, elem E, shape []int64, dims []string) []byte {
	var list []byte
	for i, d := range shape {
		var dim []byte
		if d >= 0 {
			dim = AppendVarint(nil, DimValue, uint64(d))
		} else if i < len(dims) && dims[i] != "" {
			dim = AppendString(nil, DimParam, dims[i])
		}
		list = AppendBytes(list, ShapeDim, dim)
	}
	tensor := AppendVarint(nil, TensorTypeElem, uint64(elem))
	if shape != nil {
		tensor = AppendBytes(tensor, TensorTypeShape, list)
	}
	return AppendBytes(AppendString(nil, ValueName, name), ValueType, AppendBytes(nil, TypeTensor, tensor))
}

// AppendEntry appends a field that holds a key and a value.
func AppendEntry(b []byte, num Number, key, value string) []byte {
	return AppendBytes(b, num, AppendString(AppendString(nil, entryKey, key), entryValue, value))
}

// AppendOutside appends the fields that place the elements of a tensor in another file.
func AppendOutside(b []byte, location string, offset, length int64) []byte {
	for _, e := range [][2]string{{"location", location}, {"offset", strconv.FormatInt(offset, 10)},
		{"length", strconv.FormatInt(length, 10)}} {
		b = AppendEntry(b, TensorExternal, e[0], e[1])
	}
	return AppendVarint(b, TensorLocation, 1)
}
