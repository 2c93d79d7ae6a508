package statefile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

// maxNesting is how deep below a file's top a state_dict may be.
const maxNesting = 4

// maxFound is how many state_dicts one level may hold. More are not networks: an optimizer may keep a dict of tensors
// for each parameter.
const maxFound = 64

// notWeights are the beginnings of keys under which training scripts keep other things than weights. Some of these
// hold tensors by name.
var notWeights = []string{"optim", "sched", "lr_", "callbacks", "hyper_parameters", "hparams", "loops", "scaler", "grad_scaler", "amp_",
	"rng", "criterion", "loss"}

// search finds the state_dicts in v, in the order of the file.
func (r *rebuilder) search(key string, v any, depth int) ([]*StateDict, error) {
	sd := &StateDict{Key: key, part: r.part && key == ""}
	if attrs := moduleAttributes(v); attrs != nil {
		if err := r.walkModule(sd, "", attrs, 0); err != nil {
			return nil, err
		}
		return sd.orNone(r.path), nil
	}
	items := children(v)
	if err := r.budget.spend(costLook * int64(len(items))); err != nil {
		return nil, r.tooMuch(err)
	}
	nested, err := r.searchAll(key, items, depth)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(items, func(e pair) bool { return rebuildName(e.value) != "" }) {
		return nested, nil
	}
	for _, e := range items {
		if name, ok := e.key.(text); ok {
			err = r.add(sd, string(name), e.value)
		} else {
			err = r.tooMuch(r.budget.spend(costSlot))
		}
		if err != nil {
			return nil, err
		}
	}
	own := sd.orNone(r.path)
	// Next to a state_dict there may be single tensors, such as a loss. In a state_dict there may be dicts, such as a
	// module's extra state.
	if len(own) > 0 && !slices.ContainsFunc(nested, func(o *StateDict) bool { return len(o.Tensors) >= len(sd.Tensors) }) {
		return own, nil
	}
	return nested, nil
}

// orNone finishes sd and returns it, or nothing if it holds no weights.
func (sd *StateDict) orNone(path string) []*StateDict {
	sd.finish(path)
	if !sd.ranked() && !sd.part {
		return nil
	}
	return []*StateDict{sd}
}

// searchAll searches the values under the given keys.
func (r *rebuilder) searchAll(key string, items []pair, depth int) ([]*StateDict, error) {
	if depth >= maxNesting {
		return nil, nil
	}
	var found []*StateDict
	for _, e := range items {
		name, ok := e.key.(text)
		switch e.value.(type) {
		case *dict, *node, *list, tuple:
		default:
			continue
		}
		if !ok || isOther(string(name)) || rebuildName(e.value) != "" {
			continue
		}
		if err := r.budget.spend(costName + int64(len(key)+len(name))); err != nil {
			return nil, r.tooMuch(err)
		}
		inner, err := r.search(join(key, string(name)), e.value, depth+1)
		if err != nil {
			return nil, err
		}
		found = append(found, inner...)
	}
	if len(found) > maxFound {
		return nil, nil
	}
	return found, nil
}

// children returns the values in v with their names. They are a dict's items, an object's attributes, or the numbered
// items of a tuple or list.
func children(v any) []pair {
	if items := entries(v); len(items) > 0 {
		return items
	}
	if n, ok := v.(*node); ok {
		return attributes(n)
	}
	var out []pair
	items := elements(v)
	long := len(items) > longList // no pair of model and optimizer, but perhaps the parameters of an average
	for i, item := range items {
		if long && rebuildName(item) == "" {
			return nil
		}
		out = append(out, pair{text(strconv.Itoa(i)), item})
	}
	return out
}

func isOther(key string) bool {
	key = strings.ToLower(key)
	return key == "opt" || key == "amp" || slices.ContainsFunc(notWeights, func(p string) bool { return strings.HasPrefix(key, p) })
}

// leftOver lists the top-level entries that hold no state_dict and no count.
func leftOver(root any, found []*StateDict) []Ignored {
	var out []Ignored
	if slices.ContainsFunc(found, func(sd *StateDict) bool { return sd.Key == "" }) {
		return nil
	}
	for _, e := range entries(root) {
		key, ok := e.key.(text)
		if !ok {
			continue
		}
		name := string(key)
		if _, number := integer(e.value); number && (slices.Contains(epochKeys, name) || slices.Contains(stepKeys, name)) {
			continue
		}
		if slices.ContainsFunc(found, func(sd *StateDict) bool { return sd.Key == name || strings.HasPrefix(sd.Key, name+"/") }) {
			continue
		}
		if len(out) == 1000 {
			break // nobody reads a longer list
		}
		out = append(out, Ignored{Name: name, Why: describe(e.value)})
	}
	return out
}

// The keys under which training scripts count epochs and steps.
var (
	epochKeys = []string{"epoch"}
	stepKeys  = []string{"global_step", "step", "iteration", "iter", "num_updates"}
)

// progress returns the number under the first of the keys at a file's top, or in OpenMMLab's "meta" there. It returns
// -1 if there is none.
func progress(root any, keys []string) int64 {
	meta, _ := lookup(entries(root), "meta")
	for _, items := range [][]pair{entries(root), entries(meta)} {
		for _, key := range keys {
			v, _ := lookup(items, key)
			if n, ok := integer(v); ok && n >= 0 {
				return n
			}
		}
	}
	return -1
}

// moduleAttributes returns the attributes of an nn.Module that was pickled whole. They are the attributes of its
// class. A module of torch.fx is rebuilt by a call, and its attributes are the call's first argument.
func moduleAttributes(v any) []pair {
	n, ok := v.(*node)
	if !ok {
		return nil
	}
	for _, pairs := range [][]pair{attributes(n), entries(argument(n, 0))} {
		if len(pairs) > maxAttributes {
			continue
		}
		_, modules := lookup(pairs, "_modules")
		_, parameters := lookup(pairs, "_parameters")
		if modules && parameters {
			return pairs
		}
	}
	return nil
}

// maxAttributes is more than the attributes of any module.
const maxAttributes = 1024

// maxDepth is the largest depth of nested modules.
const maxDepth = 200

// walkModule adds the tensors that Module.state_dict() would return, in its order and with its names. It does not
// need to know the class.
func (r *rebuilder) walkModule(sd *StateDict, prefix string, attrs []pair, depth int) error {
	if depth > maxDepth {
		return &Error{Path: r.path, What: "modules nest deeper than 200"}
	}
	hidden, _ := lookup(attrs, "_non_persistent_buffers_set")
	leaves := map[string]bool{}
	for _, name := range elements(hidden) {
		if s, ok := name.(text); ok {
			if err := r.budget.spend(costName); err != nil {
				return r.tooMuch(err)
			}
			leaves[string(s)] = true
		}
	}
	for _, of := range []string{"_parameters", "_buffers"} {
		held, _ := lookup(attrs, of)
		for _, e := range entries(held) {
			key, ok := e.key.(text)
			if !ok || e.value == nil || of == "_buffers" && leaves[string(key)] {
				continue
			}
			if err := r.add(sd, prefix+string(key), e.value); err != nil {
				return err
			}
		}
	}
	modules, _ := lookup(attrs, "_modules")
	for _, e := range entries(modules) {
		key, ok := e.key.(text)
		if !ok || e.value == nil {
			continue
		}
		name := prefix + string(key) + "."
		if err := r.budget.spend(costName + int64(len(name))); err != nil {
			return r.tooMuch(err)
		}
		child := moduleAttributes(e.value)
		if child == nil {
			sd.Ignored = append(sd.Ignored, Ignored{Name: prefix + string(key), Why: describe(e.value) + ", want a module"})
			continue
		}
		if err := r.walkModule(sd, name, child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// A rebuilder makes tensors from the nodes of PyTorch's pickles.
type rebuilder struct {
	path     string
	c        *container
	budget   *budget
	maxBytes int64 // the most that a tensor may take whose strides repeat its elements
	part     bool  // one of several shards
}

// tooMuch returns the error for a spent budget, or nil.
func (r *rebuilder) tooMuch(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Path: r.path, What: "too many tensors and names", Err: err}
}

// rebuilds lists the functions that PyTorch pickles tensors with. The names lack "torch." and the module, which has
// changed. Functions that are refused have a reason.
var rebuilds = map[string]string{
	"_rebuild_tensor":                        "",
	"_rebuild_tensor_v2":                     "",
	"_rebuild_tensor_v3":                     "",
	"_rebuild_parameter":                     "",
	"_rebuild_parameter_with_state":          "",
	"_rebuild_from_type":                     "",
	"_rebuild_from_type_v2":                  "",
	"_rebuild_device_tensor_from_cpu_tensor": "on a device of its own kind",
	"_rebuild_device_tensor_from_numpy":      "on a device of its own kind",
	"_rebuild_xla_tensor":                    "on a device of its own kind",
	"_rebuild_qtensor":                       "quantised",
	"_rebuild_sparse_tensor":                 "sparse",
	"_rebuild_sparse_csr_tensor":             "sparse",
	"_rebuild_nested_tensor":                 "a nested tensor",
	"_rebuild_meta_tensor_no_storage":        "on the meta device, without elements",
	"_rebuild_wrapper_subclass":              "of a tensor subclass that has no elements of its own",
	"UninitializedParameter":                 "uninitialised: a lazy module that has never run",
	"UninitializedBuffer":                    "uninitialised: a lazy module that has never run",
	"Parameter":                              "pickled by PyTorch before 0.4",
	"Variable":                               "pickled by PyTorch before 0.4",
}

// stored is the name for a tensor that is there already, as in a distributed checkpoint.
const stored = "stored"

// rebuildName returns the key of v in rebuilds, or "".
func rebuildName(v any) string {
	if _, ok := v.(*Tensor); ok {
		return stored
	}
	name, ok := strings.CutPrefix(className(v), "torch.")
	if !ok {
		return ""
	}
	name = name[strings.LastIndexByte(name, '.')+1:]
	if _, known := rebuilds[name]; known || strings.HasPrefix(name, "_rebuild_") {
		return name
	}
	return ""
}

// tensor reads v. Both results are nil if v is no tensor. The error is a refusal.
func (r *rebuilder) tensor(name string, v any) (*Tensor, kind, error) {
	const most = 8 // wrappers around one tensor
	for range most {
		n, _ := v.(*node)
		switch f := rebuildName(v); f {
		case "":
			return nil, kind{}, nil
		case stored:
			t := *v.(*Tensor)
			t.Name, t.Short = name, name
			return &t, kind{}, nil
		case "_rebuild_parameter", "_rebuild_parameter_with_state":
			v = argument(n, 0)
			if rebuildName(v) == "" {
				return nil, kind{}, refuse("holds %s, want a tensor", describe(v))
			}
		case "_rebuild_from_type", "_rebuild_from_type_v2":
			v = &node{callee: argument(n, 0), args: argument(n, 2)}
			if rebuildName(v) == "" {
				return nil, kind{}, refuse("of a tensor subclass, %s", describe(argument(n, 1)))
			}
		case "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3":
			return r.plain(name, n, f == "_rebuild_tensor_v3")
		default:
			if why := rebuilds[f]; why != "" {
				return nil, kind{}, refuse("%s, want a dense tensor of floats", why)
			}
			return nil, kind{}, refuse("rebuilt by %s, which swagwrap does not know", shorten(f))
		}
	}
	return nil, kind{}, refuse("wrapped more than %d times", most)
}

// plain reads a call of _rebuild_tensor(storage, offset, size, stride),
// _rebuild_tensor_v2(…, requires_grad, hooks[, metadata]) or
// _rebuild_tensor_v3(…, requires_grad, hooks, dtype[, metadata]).
func (r *rebuilder) plain(name string, n *node, v3 bool) (*Tensor, kind, error) {
	p, ok := argument(n, 0).(*persistent)
	if !ok {
		return nil, kind{}, errors.New("without a storage")
	}
	ref, ok := newReference(p)
	if !ok {
		return nil, kind{}, fmt.Errorf("its storage is not one of PyTorch's: %s", describeReference(p))
	}
	k, metadata := ref.kind, argument(n, 6)
	if v3 {
		c, _ := argument(n, 6).(*class)
		if c == nil {
			return nil, kind{}, errors.New("without a dtype")
		}
		if k, ok = dtypeKinds[strings.TrimPrefix(c.name, "torch.")]; !ok {
			return nil, kind{}, refuse("%s, which swagwrap does not read", shorten(c.name))
		}
		metadata = argument(n, 7)
	}
	for _, bit := range entries(metadata) {
		if bit.value == true {
			name := describe(bit.key)
			if s, ok := bit.key.(text); ok {
				name = shorten(string(s))
			}
			return nil, kind{}, refuse("with the bit %s set, want its elements resolved", name)
		}
	}
	shape, ok := integers(argument(n, 2))
	strides, ok2 := integers(argument(n, 3))
	offset, ok3 := integer(argument(n, 1))
	if !ok || !ok2 || !ok3 {
		return nil, kind{}, errors.New("its offset, shape or strides are no integers")
	}
	if k.dtype == weights.Invalid {
		if strings.HasPrefix(k.name, "uint") {
			return nil, kind{k.name + " " + fmt.Sprint(shape), k.dtype, k.size}, nil // never weights
		}
		return nil, kind{}, refuse("%s, want float32, float16, bfloat16 or float64", k.name)
	}
	rec, data, err := ref.find(r.c)
	if err != nil {
		return nil, kind{}, err
	}
	v, err := newView(data, k.size, offset, shape, strides, r.c.bigEndian, r.maxBytes)
	if err != nil {
		return nil, kind{}, err
	}
	skip := ref.skip * ref.kind.size / k.size
	return &Tensor{Name: name, Short: name, Shape: shape, Piece: v.piece(k.dtype), damaged: rec.damaged,
		Storage: Storage{r.path, ref.key, skip + offset, fmt.Sprint(strides)}}, k, nil
}

// integers reads a shape or strides.
func integers(v any) ([]int64, bool) {
	const most = 64 // dimensions, as in PyTorch
	items := elements(v)
	switch v.(type) {
	case tuple, *list, *node:
	default:
		return nil, false
	}
	out := make([]int64, 0, min(len(items), most))
	for _, item := range items {
		n, ok := integer(item)
		if !ok || len(out) == most {
			return nil, false
		}
		out = append(out, n)
	}
	return slices.Clip(out), true
}

func describeReference(p *persistent) string {
	if id := elements(p.id); len(id) > 1 {
		return describe(id[1])
	}
	return describe(p.id)
}

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
