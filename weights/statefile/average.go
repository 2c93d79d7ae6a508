package statefile

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// An Average is what a file says of a state_dict that holds the average of several iterates, and not weights that SGD moved.
type Average struct {
	Mark     string // what shows it, in words, or "" if nothing does
	Iterate  string // the key of the weights that SGD moved, in the same file, or ""
	Iterates bool   // the file says that these are the weights that SGD moved, whatever their key is called
}

// Average returns what the file says of the weights as an average.
func (sd *StateDict) Average() Average {
	switch n := sd.count("n_averaged"); {
	case sd.average.Mark != "":
	case n > 1:
		return Average{Mark: fmt.Sprintf("n_averaged is %d", n)}
	case sd.ofEMA():
		return Average{Mark: "ema-pytorch keeps its average under ema_model"}
	}
	return sd.average
}

// ofEMA reports whether the state_dict is the EMA of ema-pytorch without the weights that SGD moved.
func (sd *StateDict) ofEMA() bool {
	of := slices.ContainsFunc(sd.Ignored, func(g Ignored) bool { return g.Name == "initted" })
	other := func(t *Tensor) bool { return !strings.HasPrefix(t.Name, "ema_model.") }
	return of && len(sd.Tensors) > 0 && !slices.ContainsFunc(sd.Tensors, other)
}

// A ScheduleFree is the mode of a schedule-free optimizer when its weights were saved. In training mode they are points between
// its iterates and their average, and in evaluation mode the average.
type ScheduleFree string

const (
	TrainingMode   ScheduleFree = "training"
	EvaluationMode ScheduleFree = "evaluation"
)

// markAverages finds the marks that training programs leave in a file.
func (f *File) markAverages(root any, r *rebuilder) {
	at := func(keys ...string) any {
		v := root
		for _, key := range keys {
			v, _ = lookup(entries(v), key)
		}
		return v
	}
	dict := func(key string) *StateDict {
		if i := slices.IndexFunc(f.dicts, func(sd *StateDict) bool { return sd.Key == key }); i >= 0 {
			return f.dicts[i]
		}
		return nil
	}
	exchanged := func(average, iterates, mark string) { // both are in the file
		if a, b := dict(average), dict(iterates); a != nil && b != nil {
			a.average, b.average = Average{Mark: mark, Iterate: iterates}, Average{Iterates: true}
		}
	}
	exchanged("state_dict", "current_model_state",
		"Lightning keeps the average there, and the weights that SGD moved under current_model_state")
	if at("meta", "mmengine_version") != nil {
		exchanged("state_dict", "ema_state_dict", "the EMAHook of MMEngine exchanges the two: state_dict is the average")
	}
	for _, e := range entries(at("callbacks")) {
		if sd := dict("state_dict"); sd != nil && sd.holds(r, entries(attribute(e.value, "average_model_state"))) {
			sd.average.Mark = "average_model_state of StochasticWeightAveraging has the same weights"
		}
	}
	for _, sd := range f.dicts { // of torch_ema
		if outer, ok := strings.CutSuffix(sd.Key, "shadow_params"); ok {
			f.markShadowed(sd, dict(outer+"collected_params"))
		}
	}
	for _, e := range algorithms(at("state", "algorithms")) {
		if sd := dict("state/model"); sd != nil {
			for _, flag := range []string{"ema_weights_active", "swa_completed"} {
				if attribute(e, flag) == true {
					sd.average = Average{Mark: flag + " of Composer is True", Iterate: f.addExchanged(r, attribute(e, "ema_model"))}
				}
			}
		}
	}
	f.ScheduleFree = scheduleFree(root)
}

// markShadowed marks weights that are equal to the average shadow. Where torch_ema has put its average into a network, collected are the
// iterates, or nil.
func (f *File) markShadowed(shadow, collected *StateDict) {
	for _, sd := range f.dicts {
		if sd != shadow && sd != collected && shadow.SameWeights(sd) {
			sd.average = Average{Mark: shadow.Key + " has the same weights"}
			if collected != nil {
				sd.average.Iterate, collected.average = collected.Key, Average{Iterates: true}
			}
		}
	}
}

// addExchanged adds the weights that SGD moved, which the EMA of Composer keeps in two dicts while the average is in their place. It
// returns their key, or "".
func (f *File) addExchanged(r *rebuilder, exchanged any) string {
	sd := &StateDict{Key: "state/algorithms/ema_model", average: Average{Iterates: true}}
	for _, part := range []string{"named_parameters_dict", "named_buffers_dict"} {
		for _, e := range entries(attribute(exchanged, part)) {
			if name, ok := e.key.(text); ok && r.add(sd, string(name), e.value) != nil {
				return ""
			}
		}
	}
	if sd.finish(f.Path); len(sd.Tensors) == 0 {
		return ""
	}
	f.dicts = append(f.dicts, sd)
	return sd.Key
}

// attribute returns an item of a dict, or nil.
func attribute(v any, key string) any {
	found, _ := lookup(entries(v), key)
	return found
}

// algorithms returns the states of Composer's algorithms: a dict by name, or pairs of name and state.
func algorithms(v any) (states []any) {
	for _, e := range entries(v) {
		states = append(states, e.value)
	}
	for _, e := range elements(v) {
		if pair := elements(e); len(pair) == 2 {
			states = append(states, pair[1])
		}
	}
	return states
}

// holds reports whether the state_dict has the elements of all tensors of items, under the same names. Batch-norm statistics do not
// count: those of an average are computed again.
func (sd *StateDict) holds(r *rebuilder, items []pair) bool {
	same := 0
	for _, e := range items {
		name, _ := e.key.(text)
		t, ok := sd.byName[string(name)]
		if !ok || IsStatistic(string(name)) {
			continue
		}
		n, _ := e.value.(*node)
		if n == nil {
			return false
		}
		o, _, err := r.tensor(string(name), n)
		if err != nil || o == nil || o.Len() != t.Len() || o.DType != t.DType || !bytes.Equal(o.Bytes(), t.Bytes()) {
			return false
		}
		same++
	}
	return same > 0
}

// IsStatistic reports whether PyTorch's batch norm has a statistic of this name.
func IsStatistic(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	return last == "running_mean" || last == "running_var" || last == "num_batches_tracked"
}

// scheduleFree returns the mode of the schedule-free optimizer whose state is at a file's top, or "".
func scheduleFree(root any) ScheduleFree {
	for _, e := range entries(root) {
		key, _ := e.key.(text)
		if !strings.HasPrefix(strings.ToLower(string(key)), "opt") {
			continue
		}
		for _, optimizer := range slices.Concat(elements(e.value), []any{e.value}) {
			for _, group := range elements(attribute(optimizer, "param_groups")) {
				switch attribute(group, "train_mode") {
				case true:
					return TrainingMode
				case false:
					return EvaluationMode
				}
			}
		}
	}
	return ""
}

// refuseParts makes a state_dict unreadable that has the weights of one part of several: DeepSpeed's stage 3 leaves empty tensors in
// their places.
func (f *File) refuseParts(root any) {
	if _, ok := lookup(entries(root), "ds_version"); !ok {
		return
	}
	for _, sd := range f.dicts {
		if i := slices.IndexFunc(sd.Tensors, func(t *Tensor) bool { return t.Len() == 0 }); i >= 0 && sd.err == nil {
			sd.err = &Error{
				Path:   f.Path,
				Tensor: sd.Tensors[i].Name,
				What:   "empty: a part of a checkpoint of DeepSpeed's ZeRO, stage 3, whose weights are in several files, want one file",
				Hint:   zeroHint,
			}
		}
	}
}

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
		if len(items) > *left {
			return nil, false
		}
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
