// Package baseline holds the methods that SWAG is compared with, and SWAG itself:
// one file a method, with its key, what it needs, its cost, and its run.
//
// # Invariants
//
// All methods see the same data, in the same batches. Members of all are drawn by
// the same seed, and have batch-norm statistics from the same images.
//
// # Concurrency
//
// One method runs at a time; networks run on as many threads as the engine has.
package baseline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// A Method predicts data from what training left.
type Method struct {
	Key  string                  // as --methods has it
	Name func(in *Inputs) string // as tables have it
	// Needs says what the inputs lack for it, or returns "". What a graph keeps of
	// Dropout, and what its last layer is, shows only when the method runs: see unfit.
	Needs func(in *Inputs) string
	// Cost is about how many images it sends through networks.
	Cost func(in *Inputs, c Cost) int64
	Run  func(w *work) error
	// From names what the method begins with, if others begin with it too: it is
	// kept until the last of them has run.
	From string
	// Asked methods run only if --methods names them.
	Asked bool
	// Deploy says what sample makes the method's ensemble by: see [Inputs.Deploy]. nil
	// where there is none.
	Deploy func(in *Inputs) *ensemble.Settings
	// AllRuns says that it has members of every run, and not of the first alone.
	AllRuns bool
	// OneNetwork says that its members are draws of what one network gives out.
	OneNetwork bool
	// Scores is set where the method changes scores of labelled classes only, or shows
	// what a mistake costs: it has nothing to say about images of another domain.
	Scores bool
}

// Cost is what methods' costs are made of, in images.
type Cost struct {
	Data      int64 // one network over all data
	BatchNorm int64 // one recomputation of batch-norm statistics
	Orders    int64 // SWA with the batch-norm images in other orders
	Begun     bool  // an earlier method has run what this one begins with: see [Method.From]
}

// methods are in the order of the tables.
var methods = []*Method{sgd, sgdEnsemble, iterates, staleSWA, swa, swaTemp, swaVector, dropout, laplace, isotropic, swagDiag, swagMethod, swagTemp, swagTuned, deepSGD, deepSWA, multiSWAG}

// Keys of methods that studies speak about.
const (
	SWA       = "swa"
	SWATemp   = "swa-temp"
	StaleSWA  = "swa-stale"
	SWAG      = "swag"
	SWAGTemp  = "swag-temp"
	SWAGTuned = "swag-tuned"
	SWAGDiag  = "swag-diag"
	MultiSWAG = "multiswag"
	Laplace   = "swa-laplace"
)

// Keys lists all methods.
func Keys() []string { return keys(func(*Method) bool { return true }) }

// Detectors lists those that run to detect other domains, unless others are asked
// for.
func Detectors() []string { return keys(func(m *Method) bool { return !m.Asked && !m.Scores }) }

func keys(which func(*Method) bool) []string {
	var out []string
	for _, m := range methods {
		if which(m) {
			out = append(out, m.Key)
		}
	}
	return out
}

// Parse reads a list of methods separated by commas; "all" is all of them.
func Parse(list string) ([]string, error) {
	var out []string
	for _, key := range strings.Split(list, ",") {
		switch key = strings.TrimSpace(key); {
		case key == "all":
			out = append(out, Keys()...)
		case find(key) != nil:
			out = append(out, key)
		default:
			return nil, fmt.Errorf("no method %q: want all, or some of %s", key, strings.Join(Keys(), ", "))
		}
	}
	return out, nil
}

func find(key string) *Method {
	if i := slices.IndexFunc(methods, func(m *Method) bool { return m.Key == key }); i >= 0 {
		return methods[i]
	}
	return nil
}

// Run is what one training run left: its posterior, and the checkpoints that it
// was fitted to, or none where they cannot be found.
type Run struct {
	Network     *infer.Network
	Checkpoints []*onnxio.Model
}

// Inputs are what the methods are given. Methods of a single run use the first;
// several runs make deep ensembles and MultiSWAG.
type Inputs struct {
	Runs      []Run
	External  []External
	BatchNorm batchnorm.Training // training images; Laplace has use for them too
	// Asked are the keys of the methods to run. nil means Preset, or where that is
	// nil too all but those that are to be asked for. Those that lack something are
	// left out: see Missing.
	Asked, Preset []string

	Members int
	Seed    uint64
	Scale   float64 // α of SWAG and of isotropic noise; SWAG-Diag has 1, as in the paper
	// Tuned is how SWAG's members are drawn where validation data has chosen it, or nil.
	// At scale 0 it is SWA. Its seed is Seed.
	Tuned *swag.SampleOptions
}

// Networks are those of all runs.
func (in *Inputs) Networks() []*infer.Network {
	var networks []*infer.Network
	for _, r := range in.Runs {
		networks = append(networks, r.Network)
	}
	return networks
}

// Wants reports whether a method is to run and has what it needs.
func (in *Inputs) Wants(key string) bool {
	chosen := in.Asked
	switch {
	case chosen == nil && in.Preset != nil:
		chosen = in.Preset
	case chosen == nil:
		chosen = keys(func(m *Method) bool { return !m.Asked })
	}
	return slices.Contains(chosen, key) && in.Missing(key) == ""
}

// Missing says what a method lacks, or returns "".
func (in *Inputs) Missing(key string) string {
	if m := find(key); m.Needs != nil {
		return m.Needs(in)
	}
	return ""
}

// Targets are what the methods predict.
type Targets struct {
	Data []dataset.Dataset
	// Validation is what temperatures and the like are fitted on, or nil.
	Validation dataset.Dataset
	// Noise asks for what tells how much hangs on random draws: see [Predicted].
	Noise bool
	// Members asks for what each network says of the first data set.
	Members bool
}

// all lists the data sets, the validation data last.
func (t Targets) all() []dataset.Dataset {
	if t.Validation == nil {
		return t.Data
	}
	return append(slices.Clone(t.Data), t.Validation)
}

// Images returns about how many images [Predict] sends through networks.
func (in *Inputs) Images(t Targets) int64 {
	c := Cost{BatchNorm: int64(in.BatchNorm.Images())}
	if !in.Runs[0].Network.Recomputes() {
		c.BatchNorm = 0
	}
	for _, d := range t.all() {
		c.Data += int64(d.Len())
	}
	c.Orders = int64(in.reorders(t)) * (c.Data + int64(in.BatchNorm.Visited()))
	total := c.BatchNorm // SWA's
	begun := map[string]bool{}
	for _, m := range methods {
		if !in.Wants(m.Key) {
			continue
		}
		c.Begun = begun[m.From]
		total += m.Cost(in, c)
		begun[m.From] = m.From != ""
		if m.From == fromSWA && !c.Begun {
			total += c.Orders
		}
	}
	return total
}

// InOrder sorts results as tables list their methods. None at all is an error.
func InOrder[R any](results []R, key func(R) string) error {
	if len(results) == 0 {
		return errors.New("no method is left to compare")
	}
	slices.SortStableFunc(results, func(a, b R) int { return cmp.Compare(place(key(a)), place(key(b))) })
	return nil
}

func place(key string) int {
	return slices.IndexFunc(methods, func(m *Method) bool { return m.Key == key })
}

// What methods need, and what they cost.

func called(name string) func(*Inputs) string { return func(*Inputs) string { return name } }

func oneNetwork(_ *Inputs, c Cost) int64 { return c.Data }

func eachMember(in *Inputs, c Cost) int64 { return int64(in.Members) * (c.Data + c.BatchNorm) }

func needsCheckpoints(in *Inputs) string {
	if len(in.Runs[0].Checkpoints) == 0 {
		return "the checkpoints"
	}
	return ""
}

func needsDeviations(in *Inputs) string {
	if in.Runs[0].Network.Posterior.Options.Columns == 0 {
		return "a posterior with deviations"
	}
	return ""
}

func needsRuns(in *Inputs) string {
	if len(in.Runs) < 2 {
		return "several posteriors"
	}
	return ""
}
