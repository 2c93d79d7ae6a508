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
	if n := sd.count("n_averaged"); sd.average.Mark == "" && n > 1 {
		return Average{Mark: fmt.Sprintf("n_averaged is %d", n)}
	}
	return sd.average
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
	for _, e := range algorithms(at("state", "algorithms")) {
		if sd := dict("state/model"); sd != nil {
			for _, flag := range []string{"ema_weights_active", "swa_completed"} {
				if attribute(e, flag) == true {
					sd.average.Mark = flag + " of Composer is True"
				}
			}
		}
	}
	f.ScheduleFree = scheduleFree(root)
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
		if !ok || isStatistic(string(name)) {
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

// isStatistic reports whether PyTorch's batch norm has a statistic of this name.
func isStatistic(name string) bool {
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

// MeanKey returns the key of the mean in a posterior that the code of the SWAG paper saved (wjmaddox/swa_gaussian), or "" for
// another state_dict. Such a file keeps three tensors for each weight: NAME_mean, NAME_sq_mean and NAME_cov_mat_sqrt.
func (sd *StateDict) MeanKey() string {
	models := slices.ContainsFunc(sd.all, func(t *Tensor) bool { return t.Name == "n_models" })
	if !models || !slices.ContainsFunc(sd.Tensors, func(t *Tensor) bool { return sd.meanOf(t) != "" }) {
		return ""
	}
	return join(sd.Key, "mean")
}

// meanOf returns the name of the weight whose mean a tensor of such a file is, or "".
func (sd *StateDict) meanOf(t *Tensor) string {
	name, ok := strings.CutSuffix(t.Name, "_mean")
	if _, square := sd.byName[name+"_sq_mean"]; !ok || !square {
		return ""
	}
	return name
}

// mean returns the mean of such a file as a state_dict.
func (sd *StateDict) mean(path string) *StateDict {
	out := &StateDict{Key: sd.MeanKey(), err: sd.err}
	for _, t := range sd.all {
		c := *t
		if name := sd.meanOf(t); name != "" {
			c.Name, c.Short = name, name
		} else if strings.HasSuffix(t.Name, "_sq_mean") || strings.HasSuffix(t.Name, "_cov_mat_sqrt") || t.Name == "n_models" {
			continue
		}
		out.place(&c)
	}
	out.finish(path)
	return out
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

// under returns the part of a file's state_dicts at a key that goes on with the beginning of names: "ema/ema_model" for the
// names "ema_model.…" under "ema". It returns nil if there is none.
func (f *File) under(key string) *StateDict {
	for _, sd := range f.dicts {
		if sd.MeanKey() == key {
			return sd.mean(f.Path)
		}
		prefix := key
		if sd.Key != "" {
			var ok bool
			if prefix, ok = strings.CutPrefix(key, sd.Key+"/"); !ok {
				continue
			}
		}
		prefix = strings.TrimSuffix(prefix, ".") + "."
		part := &StateDict{Key: key, err: sd.err}
		for _, t := range sd.all {
			if name, ok := strings.CutPrefix(t.Name, prefix); ok && name != "" {
				c := *t
				c.Name, c.Short = name, name
				part.place(&c)
			}
		}
		if part.finish(f.Path); part.ranked() && len(part.Tensors) > 0 {
			return part
		}
	}
	return nil
}

// NetworkKeys returns the keys of several networks that the state_dict holds, or nil. The beginnings of names distinguish them, such as
// "online_model" and "ema_model". The rest of their names is the same, and so are the shapes. Layers have names without a further
// module, and blocks have numbers.
func (sd *StateDict) NetworkKeys() (keys []string) {
	tensors, modules := map[string][]string{}, map[string]bool{}
	var prefixes []string
	for _, t := range sd.Tensors {
		prefix, name, ok := strings.Cut(t.Name, ".")
		if !ok || strings.Trim(prefix, "0123456789") == "" {
			continue
		}
		if tensors[prefix] == nil {
			prefixes = append(prefixes, prefix)
		}
		tensors[prefix] = append(tensors[prefix], fmt.Sprint(name, t.Shape))
		modules[prefix] = modules[prefix] || strings.Contains(name, ".")
	}
	longest := 0
	for _, n := range tensors {
		slices.Sort(n)
		longest = max(longest, len(n))
	}
	twins := slices.DeleteFunc(prefixes, func(p string) bool {
		return !modules[p] || len(tensors[p]) < longest || !slices.ContainsFunc(prefixes, func(o string) bool {
			return o != p && slices.Equal(tensors[o], tensors[p])
		})
	})
	if longest < 2 || len(twins)*longest < len(sd.Tensors) {
		return nil
	}
	for _, prefix := range twins {
		keys = append(keys, join(sd.Key, prefix))
	}
	return keys
}
