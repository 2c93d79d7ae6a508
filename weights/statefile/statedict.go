package statefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

// A StateDict is one set of named tensors in a file.
type StateDict struct {
	// Key is its place in the file, such as "state_dict" or "ema/model"; "" means the file itself.
	Key string
	// Prefix is the common start of all names that wrappers of PyTorch and usual training code add, such as
	// "module.model.". Short names lack it.
	Prefix string
	// Tensors holds the float tensors in the order of the file.
	Tensors []*Tensor
	// Ignored lists everything else in it that has a name.
	Ignored []Ignored

	all     []*Tensor          // of any type, in the order of the file
	byName  map[string]*Tensor // those of Tensors
	average Average            // the marks of the file
	part    bool               // one of several shards, which may hold only scalars
	err     error              // why it cannot be read
}

// Ignored is an entry of a file that is no weight.
type Ignored struct {
	Name   string  `json:"name"`
	Why    string  `json:"what"` // what it is, in a few words
	Tensor *Tensor `json:"-"`    // if it is a tensor that can be read, such as a counter
}

// Err returns the reason why the state_dict cannot be used, or nil.
func (sd *StateDict) Err() error { return sd.err }

// All returns every tensor that can be read, of any type, in the order of the file. Counters, masks and the weights of a
// loss are among them.
func (sd *StateDict) All() []*Tensor { return sd.all }

// Len returns the number of elements of all float tensors.
func (sd *StateDict) Len() int64 {
	var n int64
	for _, t := range sd.Tensors {
		n += t.Len()
	}
	return n
}

// Find returns the float tensor of the given name in the file.
func (sd *StateDict) Find(name string) (*Tensor, bool) {
	t, ok := sd.byName[name]
	return t, ok
}

// Batches returns the largest number of training batches that a batch-norm layer has counted, or −1 if there is no such
// count. Checkpoints of one run have different numbers, unless all layers are frozen.
func (sd *StateDict) Batches() int64 { return sd.count(counter) }

// Counters returns the number of training batches that each batch norm has counted, by the short name of its running mean.
func (sd *StateDict) Counters() map[string]int64 {
	counters := map[string]int64{}
	for _, x := range sd.Ignored {
		if t := x.Tensor; t != nil && strings.HasSuffix(x.Name, counter) && t.DType == weights.I64 && t.Len() == 1 {
			counters[strings.TrimSuffix(t.Short, counter)+"running_mean"] = int64(binary.LittleEndian.Uint64(t.Bytes()))
		}
	}
	return counters
}

// count returns the largest count whose name ends like that, or −1.
func (sd *StateDict) count(name string) int64 {
	most := int64(-1)
	for _, x := range sd.Ignored {
		if t := x.Tensor; t != nil && strings.HasSuffix(x.Name, name) && t.DType == weights.I64 && t.Len() == 1 {
			most = max(most, int64(binary.LittleEndian.Uint64(t.Bytes())))
		}
	}
	return most
}

// Verify reads the tensors and checks them against the CRC-32 that PyTorch's zip format stores. It finds damage, not
// forgery. Nothing is checked in files without a CRC-32: those of other formats, such as the legacy one
// ([File.Legacy]), and those saved without it.
func (sd *StateDict) Verify() error { return weights.Guarded(sd.verify)() }

func (sd *StateDict) verify() error {
	seen := map[[2]string]bool{}
	for _, t := range sd.Tensors {
		place := [2]string{t.Storage.Path, t.Storage.Key}
		if !seen[place] && t.damaged != nil && t.damaged() {
			return &Error{
				Path:   t.Storage.Path,
				Tensor: t.Name,
				What:   "the CRC-32 of its storage differs: the file is damaged",
				Hint:   "copy or download it again",
			}
		}
		seen[place] = true
	}
	return nil
}

// costTensor is the number of bytes of a Tensor, without its name and its dimensions.
const costTensor = 500

// add reads one entry of a state_dict. The state_dict keeps the error of a tensor, since another state_dict of the
// file may be fine. The returned error is about the file.
func (r *rebuilder) add(sd *StateDict, name string, v any) error {
	if err := r.budget.spend(costTensor + int64(len(name))); err != nil {
		return r.tooMuch(err)
	}
	t, k, err := r.tensor(name, v)
	switch {
	case err != nil:
		if sd.err == nil {
			var e *Error
			if !errors.As(err, &e) {
				e = &Error{What: err.Error()}
			}
			e.Path, e.Tensor = r.path, name
			sd.err = e
		}
	case t == nil && k.name == "":
		sd.Ignored = append(sd.Ignored, Ignored{Name: name, Why: describe(v)})
	case t == nil:
		sd.Ignored = append(sd.Ignored, Ignored{Name: name, Why: k.name})
	default:
		sd.place(t)
	}
	return nil
}

// counter is the end of the name of batch norm's counter. Averaging may have made the counter a float.
const counter = "num_batches_tracked"

// place adds t to the weights, or to the ignored entries if it cannot be a weight.
func (sd *StateDict) place(t *Tensor) {
	sd.all = append(sd.all, t)
	if t.DType.IsFloat() && !strings.HasSuffix(t.Name, counter) {
		sd.Tensors = append(sd.Tensors, t)
		return
	}
	sd.Ignored = append(sd.Ignored, Ignored{Name: t.Name, Why: fmt.Sprintf("%v %v", t.DType, t.Shape), Tensor: t})
}

// finish checks the names, and finds the parts that wrappers have added to them.
func (sd *StateDict) finish(path string) {
	sd.byName = make(map[string]*Tensor, len(sd.Tensors))
	for _, t := range sd.Tensors {
		if sd.byName[t.Name] != nil && sd.err == nil {
			sd.err = &Error{Path: path, Tensor: t.Name, What: "listed twice"}
		}
		sd.byName[t.Name] = t
	}
	sd.unwrap()
}

// outer are the attributes under which wrappers and training code keep the network. They count only if all names
// begin with one of them.
var outer = []string{"module.", "model.", "net.", "network.", "_orig_mod."}

// inner are names of wrappers around any part of the network. No network uses these names. They come from
// torch.compile, Fabric, FSDP and activation checkpointing.
var inner = strings.NewReplacer("_orig_mod.", "", "_forward_module.", "", "_fsdp_wrapped_module.", "", "_checkpoint_wrapped_module.", "")

// losses are the attributes under which training code keeps its loss.
var losses = []string{"criterion.", "loss.", "loss_fn.", "loss_function."}

// unwrap sets the short names and the prefix, and removes the weights of a loss.
func (sd *StateDict) unwrap() {
	sd.shorten()
	var prefix strings.Builder // a hostile name repeats "net." hundreds of thousands of times
	defer func() { sd.Prefix = prefix.String() }()
	for {
		sd.dropLosses()
		i := slices.IndexFunc(outer, func(p string) bool {
			return len(sd.Tensors) > 0 && !slices.ContainsFunc(sd.Tensors, func(t *Tensor) bool {
				return len(t.Short) <= len(p) || !strings.HasPrefix(t.Short, p)
			})
		})
		if i < 0 {
			return
		}
		prefix.WriteString(outer[i])
		for _, t := range sd.Tensors {
			t.Short = t.Short[len(outer[i]):]
		}
		for _, g := range sd.Ignored {
			if g.Tensor != nil {
				g.Tensor.Short = strings.TrimPrefix(g.Tensor.Short, outer[i])
			}
		}
	}
}

// shorten drops the inner wrappers from all short names, unless two names would become equal.
func (sd *StateDict) shorten() {
	short := make(map[string]bool, len(sd.Tensors))
	for _, t := range sd.Tensors {
		short[inner.Replace(t.Name)] = true
	}
	if len(short) < len(sd.Tensors) || short[""] {
		return
	}
	for _, t := range sd.Tensors {
		t.Short = inner.Replace(t.Name)
	}
	for _, g := range sd.Ignored {
		if g.Tensor != nil {
			g.Tensor.Short = inner.Replace(g.Name)
		}
	}
}

// dropLosses moves the tensors of a loss to the ignored entries, if other tensors are left.
func (sd *StateDict) dropLosses() {
	ofLoss := func(t *Tensor) bool {
		return slices.ContainsFunc(losses, func(p string) bool { return strings.HasPrefix(t.Short, p) })
	}
	if !slices.ContainsFunc(sd.Tensors, ofLoss) || !slices.ContainsFunc(sd.Tensors, func(t *Tensor) bool { return !ofLoss(t) }) {
		return
	}
	for _, t := range sd.Tensors {
		if ofLoss(t) {
			sd.Ignored = append(sd.Ignored, Ignored{t.Name, "of the loss, not of the network", t})
			delete(sd.byName, t.Name)
		}
	}
	sd.Tensors = slices.DeleteFunc(sd.Tensors, ofLoss)
}

// ranked reports whether the state_dict has a float tensor that is no scalar, or one that cannot be read. It then
// holds weights and not a metric.
func (sd *StateDict) ranked() bool {
	return sd.err != nil || slices.ContainsFunc(sd.Tensors, func(t *Tensor) bool { return len(t.Shape) > 0 })
}

// String returns the state_dict's name for lists of candidates.
func (sd *StateDict) String() string {
	where := "the file itself"
	if sd.Key != "" {
		where = fmt.Sprintf("%q", shorten(sd.Key))
	}
	if sd.err != nil {
		return where + " (cannot be read)"
	}
	return fmt.Sprintf("%s (%d tensors)", where, len(sd.Tensors))
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

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "/" + name
}
