// Package baseline holds SWAG and the methods that it is compared with. A method is a key, its
// needs, its cost and its run.
//
// # Invariants
//
// All methods see the same data in the same batches. All members are drawn with the same seed, and their batch-norm
// statistics come from the same images.
//
// # Concurrency
//
// One method runs at a time. Its networks run on as many threads as the engine has.
package baseline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// A Method predicts data from the results of training.
type Method struct {
	Key  string                  // for --methods
	Name func(in *Inputs) string // for tables
	// Needs returns what the inputs lack for the method, or "". A missing Dropout or an unsuitable last layer is only
	// detected when the method runs: see unfit.
	Needs func(in *Inputs) string
	// Stored reports whether the method runs checkpoints alone, with the batch-norm statistics
	// that they store, so that none are recomputed. nil is a method that recomputes them.
	Stored func(in *Inputs) bool
	// Cost returns about how many images the method sends through networks.
	Cost func(in *Inputs, c Cost) int64
	Run  func(ctx context.Context, w *work) error
	// From names a result that several methods start from. It is kept until the last of them has run.
	From string
	// Fits reports that the method fits something to its predictions of the validation data.
	Fits bool
	// Asked methods run only if --methods names them.
	Asked bool
	// Full methods run if all metrics are asked for, or if --methods names them: see [Inputs.Full].
	Full bool
	// Tried methods run for studies that say so in [Inputs.Tries].
	Tried bool
	// Deploy returns the settings with which sample makes the method's ensemble: see [Inputs.Deploy]. It is nil for
	// methods without an ensemble.
	Deploy func(in *Inputs) *ensemble.Settings
	// AllRuns reports that the method has members from every run, not only from the first.
	AllRuns bool
	// OneNetwork reports that the members are draws from the output of one network.
	OneNetwork bool
	// Outcomes reports that the method needs the outcomes of all examples in memory, so that it is not for pixels and
	// tokens.
	Outcomes bool
	// Features reports that the method reads features of a network in one more pass over all data, which [Fill] leaves to
	// [Predict].
	Features bool
	// Scores reports that the method only changes scores of labelled classes, or shows the cost of a mistake. Such
	// methods cannot detect images of another domain.
	Scores bool
}

// Cost holds the parts of methods' costs, in images.
type Cost struct {
	Data      int64 // one network over the data sets of the method
	Start     int64 // one network over the data sets of the result of [Method.From]
	BatchNorm int64 // one recomputation of batch-norm statistics
	Orders    int64 // SWA with the batch-norm images in other orders
	Begun     bool  // an earlier method has made the result of [Method.From]
}

// methods are in the order of tables.
var methods = slices.Concat(
	[]*Method{sgd, sgdTemp}, recalibrated(ofLast), []*Method{sgdEnsemble, iterates},
	[]*Method{staleSWA, swa, swaTemp, swaAdapted}, recalibrated(ofSWA), []*Method{dropout, laplace},
	[]*Method{isotropic, swagDiag, swagMethod, swagTemp, swagAdapted, swagMemberTemp, swagTuned, deepSGD, deepSWA, multiSWAG},
)

// Keys of methods that studies mention.
const (
	SGD       = "sgd"
	SGDTemp   = "sgd-temp"
	SGDVector = "sgd-vector"
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

// Keys returns the keys of all methods.
func Keys() []string { return keys(func(*Method) bool { return true }) }

// Detectors returns the keys of the methods that detect other domains by default.
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

// Parse reads a list of methods separated by commas; "all" means every method.
func Parse(list string) ([]string, error) {
	var out []string
	for _, key := range strings.Split(list, ",") {
		switch key = strings.TrimSpace(key); {
		case key == "all":
			out = append(out, Keys()...)
		case find(key) != nil:
			out = append(out, key)
		default:
			return nil, fmt.Errorf("method %w", &word.Unknown{Word: key, Want: append(Keys(), "all")})
		}
	}
	return out, nil
}

func find(key string) *Method {
	if i := Place(key); i >= 0 {
		return methods[i]
	}
	return nil
}

// Tempered returns the key of a method with a temperature, by that of the plain one, or "".
func Tempered(plain string) string {
	return map[string]string{SGD: SGDTemp, SWA: SWATemp, SWAG: SWAGTemp}[plain]
}

// Tried reports whether a method has Method.Tried.
func Tried(key string) bool {
	m := find(key)
	return m != nil && m.Tried
}

// UsesAllRuns reports whether a method has members from every run.
func UsesAllRuns(key string) bool {
	m := find(key)
	return m != nil && m.AllRuns
}

// Run is the result of one training run: its posterior, and its checkpoints or nil if they cannot be found.
type Run struct {
	Network     *infer.Network
	Checkpoints []*onnxio.Model
}

// Inputs are the inputs of the methods. Methods of a single run use the first. Deep ensembles and MultiSWAG use
// several.
type Inputs struct {
	Runs      []Run
	External  []External
	BatchNorm batchnorm.Training // training images; Laplace uses them too
	// Asked holds the keys of the methods to run. Nil means Preset. If both are nil, all methods run except those
	// with Method.Asked. Methods that lack an input are left out: see Missing.
	Asked, Preset []string
	// Full adds the methods with Method.Full to all methods, and Tries those with Method.Tried.
	Full, Tries bool

	Members    int  // S, or 0 for as few as have the error of [ensemble.DefaultMembers] independent ones: see [chance.Antithetic]
	Antithetic bool // members are drawn in pairs
	Orthogonal bool // at right angles: see [swag.SampleOptions]
	Seed       uint64
	Scale      float64 // α of SWAG and of isotropic noise; SWAG-Diag uses 1, as in the paper
	// Tuned holds the sampling options that validation data chose for SWAG, or nil. At scale 0 it is SWA. Its seed is
	// Seed.
	Tuned *swag.SampleOptions
	// Adapt is for methods that adapt to the data that they predict, or nil.
	Adapt *Adapt
	// TunedScale reports that the data chose the scale of Tuned alone.
	TunedScale bool
}

// Networks returns the networks of all runs.
func (in *Inputs) Networks() []*infer.Network {
	var networks []*infer.Network
	for _, r := range in.Runs {
		networks = append(networks, r.Network)
	}
	return networks
}

// Wants reports whether a method is selected and lacks nothing.
func (in *Inputs) Wants(key string) bool {
	chosen := in.Asked
	switch {
	case chosen == nil && in.Preset != nil:
		chosen = in.Preset
	case chosen == nil:
		chosen = keys(func(m *Method) bool { return !m.Asked && (in.Full || !m.Full) && (in.Full || in.Tries || !m.Tried) })
	}
	return slices.Contains(chosen, key) && in.Missing(key) == ""
}

// Recomputing lists the methods that will run with recomputed batch-norm statistics, and
// says whether others will run that need none.
func (in *Inputs) Recomputing() (methodKeys []string, others bool) {
	for _, m := range methods {
		switch {
		case !in.Wants(m.Key):
		case m.Stored != nil && m.Stored(in):
			others = true
		default:
			methodKeys = append(methodKeys, m.Key)
		}
	}
	return methodKeys, others
}

// Missing returns what a method lacks, or "".
func (in *Inputs) Missing(key string) string {
	if m := find(key); m.Needs != nil {
		return m.Needs(in)
	}
	return ""
}

// Targets are the data sets that the methods predict.
type Targets struct {
	Data []dataset.Dataset
	// Validation is the data for fitting temperatures and other parameters, or nil. Methods with [Method.Fits] predict it.
	Validation dataset.Dataset
	// Units numbers the unit of chance of each example of the first data set, or is nil. Halves that something is fitted on
	// do not share a unit.
	Units []int
	// FitsAll requests that all methods predict the validation data.
	FitsAll bool
	// Entropies requests the entropies of draws from a Laplace approximation, which cost as much as the draws.
	Entropies bool
	// Noise requests predictions that show how much results depend on random draws: see [Predicted].
	Noise bool
	// Members requests the predictions of each network for the first data set.
	Members bool
	// More returns the number of members that a result should have. More members are drawn until it has them. nil
	// leaves the number as it is.
	More func(*Predicted) (int, error)
	// Leaves reports whether the study leaves a result out, because the result lacks something. why is a note, or "". The task
	// t is nil if it is not known yet. A nil Leaves takes all results. [Fill] asks, too, so Leaves looks at no outcomes.
	Leaves func(p *Predicted, t task.Task) (out bool, why string)
}

// leaves reports whether the study leaves a result of a network out, and why.
func (t Targets) leaves(p *Predicted, n *infer.Network) (out bool, why string) {
	if t.Leaves == nil {
		return false, ""
	}
	of := p.Task()
	if of == nil {
		of = n.Known() // another job runs the networks
	}
	return t.Leaves(p, of)
}

// all returns the data sets, with the validation data last.
func (t Targets) all() []dataset.Dataset { return t.fitting(true) }

// fitting returns the data sets of a result. fits says whether something is fitted to the result.
func (t Targets) fitting(fits bool) []dataset.Dataset {
	if !t.validates(fits) {
		return t.Data
	}
	return append(slices.Clone(t.Data), t.Validation)
}

// validates reports whether a result has predictions of the validation data.
func (t Targets) validates(fits bool) bool { return t.Validation != nil && (fits || t.FitsAll) }

// fits reports whether the method, or one that starts from the same result, fits something to it.
func (in *Inputs) fits(m *Method) bool {
	return slices.ContainsFunc(methods, func(o *Method) bool {
		return o.Fits && in.Wants(o.Key) && (o == m || o.From == m.From && m.From != "")
	})
}

// Images returns about how many images [Predict] sends through networks.
func (in *Inputs) Images(t Targets) int64 {
	c := Cost{BatchNorm: int64(in.BatchNorm.Images())}
	if !in.Runs[0].Network.Recomputes() {
		c.BatchNorm = 0
	}
	length := func(data []dataset.Dataset) (n int64) {
		for _, d := range data {
			n += int64(d.Len())
		}
		return n
	}
	c.Orders = int64(in.reorders(t)) * (length(t.Data[:1]) + int64(in.BatchNorm.Visited()))
	total := c.BatchNorm // the pass of SWA
	begun := map[string]bool{}
	for _, m := range methods {
		if !in.Wants(m.Key) {
			continue
		}
		c.Data, c.Start, c.Begun = length(t.fitting(m.Fits)), length(t.fitting(in.fits(m))), begun[m.From]
		total += m.Cost(in, c)
		begun[m.From] = m.From != ""
		if m.From == fromSWA && !c.Begun {
			total += c.Orders
		}
	}
	return total
}

// InOrder sorts results by the order of methods in tables. It fails if there are none.
func InOrder[R any](results []R, notes []string, key func(R) string) error {
	if len(results) == 0 {
		return noneLeft(notes)
	}
	slices.SortStableFunc(results, func(a, b R) int { return cmp.Compare(Place(key(a)), Place(key(b))) })
	return nil
}

// noneLeft is the error of a study without results. notes say why methods are left out.
func noneLeft(notes []string) error {
	return errors.New(strings.Join(append([]string{"no method is left to compare"}, notes...), "; "))
}

// Place returns the place of a method in the order of tables, or −1 for an unknown key.
func Place(key string) int {
	return slices.IndexFunc(methods, func(m *Method) bool { return m.Key == key })
}

// Functions for the needs and costs of methods.

func called(name string) func(*Inputs) string { return func(*Inputs) string { return name } }

func oneNetwork(_ *Inputs, c Cost) int64 { return c.Start }

func eachMember(in *Inputs, c Cost) int64 { return int64(in.most()) * (c.Start + c.BatchNorm) }

// most returns the largest number of members that a method may have, without those of [Targets.More].
func (in *Inputs) most() int { return cmp.Or(in.Members, ensemble.DefaultMembers) }

// shared returns the cost of a method that adds no network to the result of [Method.From].
func shared(cost func(*Inputs, Cost) int64) func(*Inputs, Cost) int64 {
	return func(in *Inputs, c Cost) int64 {
		if c.Begun {
			return 0
		}
		return cost(in, c)
	}
}

func always(*Inputs) bool { return true }

// Single reports whether the first run has one checkpoint. Then that network takes the place of SWA, and methods that
// need a spread are left out.
func (in *Inputs) Single() bool { return len(in.Runs) > 0 && in.Runs[0].Network.Posterior.Single() }

// own is what users call the last checkpoint.
const own = "your network"

// centre returns the name of the network that dropout and Laplace start from.
func (in *Inputs) centre() string {
	if in.Single() {
		return own
	}
	return "SWA"
}

// hasLast reports whether the last checkpoint of a run is known. A posterior of one checkpoint holds it.
func (r Run) hasLast() bool { return len(r.Checkpoints) > 0 || r.Network.Posterior.Single() }

func needsLast(in *Inputs) string {
	if !in.Runs[0].hasLast() {
		return "the checkpoints"
	}
	return ""
}

// spread is what methods need that average or draw weights.
const spread = "two or more checkpoints"

func needsSpread(in *Inputs) string {
	if in.Single() {
		return spread
	}
	return ""
}

func needsCheckpoints(in *Inputs) string { return cmp.Or(needsSpread(in), needsLast(in)) }

func needsDeviations(in *Inputs) string {
	if what := needsSpread(in); what != "" {
		return what
	}
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
