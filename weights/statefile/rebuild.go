package statefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

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
