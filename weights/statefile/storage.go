package statefile

import (
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

// A kind is an element type, with PyTorch's name.
type kind struct {
	name  string
	dtype weights.DType // Invalid if swagwrap has no such type
	size  int64         // bytes of an element
}

// storageKinds maps the class of a storage to the kind of its elements.
var storageKinds = map[string]kind{
	"FloatStorage":         {"float32", weights.F32, 4},
	"DoubleStorage":        {"float64", weights.F64, 8},
	"HalfStorage":          {"float16", weights.F16, 2},
	"BFloat16Storage":      {"bfloat16", weights.BF16, 2},
	"LongStorage":          {"int64", weights.I64, 8},
	"IntStorage":           {"int32", weights.I32, 4},
	"ShortStorage":         {"int16", weights.I16, 2},
	"CharStorage":          {"int8", weights.I8, 1},
	"ByteStorage":          {"uint8", weights.U8, 1},
	"BoolStorage":          {"bool", weights.Bool, 1},
	"UntypedStorage":       {"uint8", weights.U8, 1},
	"_UntypedStorage":      {"uint8", weights.U8, 1}, // PyTorch 1.11 and 1.12
	"ComplexFloatStorage":  {"complex64", weights.Invalid, 8},
	"ComplexDoubleStorage": {"complex128", weights.Invalid, 16},
	"QInt8Storage":         {"qint8", weights.Invalid, 1},
	"QUInt8Storage":        {"quint8", weights.Invalid, 1},
	"QInt32Storage":        {"qint32", weights.Invalid, 4},
	"QUInt4x2Storage":      {"quint4x2", weights.Invalid, 1},
	"QUInt2x4Storage":      {"quint2x4", weights.Invalid, 1},
}

// dtypeKinds maps a kind's own name, which _rebuild_tensor_v3 gives, to the kind. It holds the kinds of the storages,
// and newer ones without a storage class.
var dtypeKinds = func() map[string]kind {
	kinds := map[string]kind{}
	for _, k := range storageKinds {
		kinds[k.name] = k
	}
	for name, size := range map[string]int64{"uint16": 2, "uint32": 4, "uint64": 8, "complex32": 4,
		"float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1} {
		kinds[name] = kind{name, weights.Invalid, size}
	}
	return kinds
}()

// A reference is a pickle's reference to a storage: ('storage', class, key, location, number of elements). In old
// files it may also give a range of that storage.
type reference struct {
	kind  kind
	key   string
	numel int64
	view  string // key of the range, or ""
	skip  int64  // its first element
}

// newReference reads a persistent id. It returns false if the id is no storage, or has a class that PyTorch does not
// have.
func newReference(p *persistent) (reference, bool) {
	id, _ := p.id.(tuple)
	if len(id) < 5 {
		return reference{}, false
	}
	tag, _ := id[0].(text)
	c, isClass := id[1].(*class)
	key, isText := id[2].(text)
	numel, isInt := integer(id[4])
	if string(tag) != "storage" || !isClass || !isText || !isInt || numel < 0 {
		return reference{}, false
	}
	k, known := storageKinds[c.name[strings.LastIndexByte(c.name, '.')+1:]]
	ref := reference{kind: k, key: string(key), numel: numel}
	if len(id) < 6 || id[5] == nil {
		return ref, known
	}
	view, _ := id[5].(tuple)
	if len(view) != 3 {
		return reference{}, false
	}
	viewKey, isText := view[0].(text)
	skip, isInt := integer(view[1])
	length, isInt2 := integer(view[2])
	if !isText || !isInt || !isInt2 || skip < 0 || length < 0 || skip > numel || length > numel-skip {
		return reference{}, false
	}
	ref.view, ref.skip, ref.numel = string(viewKey), skip, length
	return ref, known
}

// find returns the record of the reference, and its elements in that record.
func (ref reference) find(c *container) (record, []byte, error) {
	rec, ok := c.records[c.folder+ref.key]
	size := ref.kind.size
	held := int64(len(rec.data)) / size
	switch {
	case !ok && ref.numel == 0:
		return rec, nil, nil
	case !ok:
		return rec, nil, fmt.Errorf("its storage %q is not in the file: truncated, or saved without data", shorten(ref.key))
	case ref.skip > held || ref.numel > held-ref.skip:
		return rec, nil, fmt.Errorf("its storage %q has %d bytes, want %d elements of %d", shorten(ref.key), len(rec.data), ref.numel, size)
	}
	to := (ref.skip + ref.numel) * size
	return rec, rec.data[ref.skip*size : to : to], nil
}
