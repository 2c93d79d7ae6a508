package statefile

import (
	"slices"
	"strconv"
	"strings"
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
	const most = 16
	var out []pair
	for i, item := range elements(v) {
		if i == most {
			return nil // such a long list is no pair of model and optimizer
		}
		out = append(out, pair{text(strconv.Itoa(i)), item})
	}
	return out
}

func isOther(key string) bool {
	key = strings.ToLower(key)
	return key == "opt" || key == "amp" || slices.ContainsFunc(notWeights, func(p string) bool { return strings.HasPrefix(key, p) })
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "/" + name
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
