package statefile

// A TimmModel is what timm's train.py says of the network in its checkpoints.
type TimmModel struct {
	Architecture string
	// Args are the arguments of timm.create_model besides the name and the number of classes: texts, numbers, lists and dicts.
	Args map[string]any
}

// timmVersion is the version of the checkpoints that timm's CheckpointSaver writes. Other programs have an "arch" of other libraries, and
// no version.
const timmVersion = 2

// timmModel returns the network that timm's CheckpointSaver names in a checkpoint, or nil.
func timmModel(root any) *TimmModel {
	top := entries(root)
	version, _ := lookup(top, "version")
	arch, _ := lookup(top, "arch")
	name, ok := arch.(text)
	if v, isInt := integer(version); !ok || !isInt || v != timmVersion || len(name) == 0 || len(name) > 1000 {
		return nil
	}
	m := &TimmModel{Architecture: string(name), Args: make(map[string]any)}
	args, _ := lookup(top, "args")
	how := attributesOf(args)
	model, known := lookup(how, "model_kwargs")
	if !known {
		return nil // not of train.py, and the network may be another than its name says
	}
	// as train.py passes them
	for key, from := range map[string]string{"in_chans": "in_chans", "img_size": "img_size", "global_pool": "gp"} {
		if v, _ := lookup(how, from); v != nil {
			m.Args[key] = v
		}
	}
	for _, e := range entries(model) {
		key, ok := e.key.(text)
		if !ok {
			return nil
		}
		m.Args[string(key)] = e.value
	}
	left := 1000
	for key, v := range m.Args {
		if m.Args[key], ok = plain(v, &left); !ok {
			return nil // create_model would make another network
		}
	}
	return m
}

// plain returns a value as JSON can hold it. left bounds the number of values.
func plain(v any, left *int) (any, bool) {
	if *left--; *left < 0 {
		return nil, false
	}
	all := func(items []any) (any, bool) {
		out := make([]any, len(items))
		for i, item := range items {
			var ok bool
			if out[i], ok = plain(item, left); !ok {
				return nil, false
			}
		}
		return out, true
	}
	switch v := v.(type) {
	case nil, bool, int64:
		return v, true
	case float64:
		return v, v-v == 0
	case text:
		return string(v), len(v) <= 1000
	case tuple:
		return all(v)
	case *list:
		return all(v.items)
	case *dict:
		out := make(map[string]any, len(v.pairs))
		for _, e := range v.pairs {
			key, ok := e.key.(text)
			if !ok {
				return nil, false
			}
			if out[string(key)], ok = plain(e.value, left); !ok {
				return nil, false
			}
		}
		return out, true
	}
	return nil, false
}
