package statefile

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
