package ensemble

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/onnxio"
)

// Methods by the names that --methods takes, in the order of the tables.
const (
	SGD       = "sgd"          // the last checkpoint
	SGDs      = "sgd-ensemble" // all checkpoints, each with its own statistics
	Iterates  = "iterates"     // checkpoints from elsewhere, such as those of SGLD
	StaleSWA  = "swa-stale"    // SWA with the last checkpoint's statistics
	SWA       = "swa"
	SWATemp   = "swa-temp"   // SWA with temperature scaling
	SWAVector = "swa-vector" // SWA with vector scaling
	Dropout   = "swa-dropout"
	Laplace   = "swa-laplace"
	Isotropic = "isotropic" // noise of SWAG's size without its shape
	SWAGDiag  = "swag-diag"
	SWAG      = "swag"
	DeepSGD   = "deep-sgd" // the last checkpoints of several runs
	DeepSWA   = "deep-swa" // their SWAs
	MultiSWAG = "multiswag"
)

// Methods lists all of them.
var Methods = []string{SGD, SGDs, Iterates, StaleSWA, SWA, SWATemp, SWAVector, Dropout, Laplace, Isotropic, SWAGDiag, SWAG, DeepSGD, DeepSWA, MultiSWAG}

// DefaultMethods are all but the isotropic control, which costs as much as SWAG
// and is of interest to those who ask what the shape of its covariance is worth.
func DefaultMethods() []string {
	return slices.DeleteFunc(slices.Clone(Methods), func(m string) bool { return m == Isotropic })
}

// Run is what one training run left: its posterior, and the checkpoints that it
// was fitted to, or none where they cannot be found.
type Run struct {
	Network  *Network
	Iterates []*onnxio.Model
}

// Sequence is checkpoints from elsewhere that take the same input: iterates of
// SGLD, of another schedule, of a deep ensemble. Each has the batch-norm statistics
// that are in it; those of the first run's network can have recomputed ones in a
// row of their own.
type Sequence struct {
	Name      string
	Models    []*onnxio.Model
	Recompute bool
}

// A Lineup is methods that predict the same data. Those of a single run are of
// the first one; several runs make deep ensembles and MultiSWAG.
type Lineup struct {
	Runs      []Run
	Sequences []Sequence
	BatchNorm BatchNormData // training images; Laplace has use for them too
	// Methods names those to run; nil means DefaultMethods. Those that lack
	// something are left out: see Missing.
	Methods []string

	Members int
	Seed    uint64
	Scale   float64 // α of SWAG and of isotropic noise; SWAG-Diag has 1, as in the paper
	// Notes say which methods were left out, and why. They are there after the
	// methods have run.
	Notes []string

	preset []string // in place of DefaultMethods
}

// wants reports whether a method is to run and has what it needs.
func (l *Lineup) wants(method string) bool {
	chosen := l.Methods
	switch {
	case chosen == nil && l.preset != nil:
		chosen = l.preset
	case chosen == nil:
		chosen = DefaultMethods()
	}
	return slices.Contains(chosen, method) && l.Missing(method) == ""
}

// Missing says what a method lacks, or returns "". What a graph keeps of Dropout,
// and what its last layer is, shows only when the method runs.
func (l *Lineup) Missing(method string) string {
	switch method {
	case SGD, SGDs:
		if len(l.Runs[0].Iterates) == 0 {
			return "the checkpoints"
		}
	case Iterates:
		if len(l.Sequences) == 0 {
			return "checkpoints from elsewhere"
		}
	case StaleSWA:
		if !l.Runs[0].Network.Recomputes() {
			return "batch norm"
		}
	case Laplace:
		if l.BatchNorm.Data == nil {
			return "training images"
		}
	case SWAG, Isotropic:
		if l.Runs[0].Network.Posterior.Options.Columns == 0 {
			return "a posterior with deviations"
		}
	case DeepSGD, DeepSWA, MultiSWAG:
		if len(l.Runs) < 2 {
			return "several posteriors"
		}
		for _, r := range l.Runs {
			if method == DeepSGD && len(r.Iterates) == 0 {
				return "the checkpoints of " + r.Network.Posterior.Path
			}
			if method == MultiSWAG && r.Network.Posterior.Options.Columns == 0 {
				return "deviations in " + r.Network.Posterior.Path
			}
		}
		if method == MultiSWAG && l.Members < len(l.Runs) {
			return "a member of each posterior"
		}
	}
	return ""
}

// inOrder sorts results as Methods lists their methods. None at all is an error.
func inOrder[R any](results []R, method func(R) string) error {
	if len(results) == 0 {
		return errors.New("no method is left to compare")
	}
	slices.SortStableFunc(results, func(a, b R) int {
		return cmp.Compare(slices.Index(Methods, method(a)), slices.Index(Methods, method(b)))
	})
	return nil
}

// name returns what tables call a method.
func (l *Lineup) name(method string) string {
	runs := len(l.Runs)
	switch method {
	case SGD:
		return "SGD, last iterate"
	case SGDs:
		return fmt.Sprintf("SGD, all %d iterates", len(l.Runs[0].Iterates))
	case StaleSWA:
		return "SWA, stale BN"
	case SWA:
		return "SWA"
	case Dropout:
		return "SWA-Dropout"
	case Laplace:
		return "SWA-Laplace, last layer"
	case Isotropic:
		return "isotropic noise"
	case SWAGDiag:
		return "SWAG-Diag"
	case SWAG:
		return "SWAG"
	case DeepSGD:
		return fmt.Sprintf("deep ensemble, %d SGD", runs)
	case DeepSWA:
		return fmt.Sprintf("deep ensemble, %d SWA", runs)
	case MultiSWAG:
		return fmt.Sprintf("MultiSWAG, %d runs", runs)
	}
	return method
}

// Predicted is what one method says of the data.
type Predicted struct {
	Method, Name string
	Members      int
	StaleBN      bool // its batch-norm statistics do not belong to its weights
	Notes        []error
	Data         []*Sums // by data set
	Validation   *Sums   // nil where there is none
}

// Targets are what the methods predict.
type Targets struct {
	Data []dataset.Dataset
	// Validation is what temperatures and the like are fitted on, or nil.
	Validation dataset.Dataset
}

// all lists the data sets, the validation data last.
func (t Targets) all() []dataset.Dataset {
	if t.Validation == nil {
		return t.Data
	}
	return append(slices.Clone(t.Data), t.Validation)
}

func (t Targets) images() int64 {
	n := int64(0)
	for _, d := range t.all() {
		n += int64(d.Len())
	}
	return n
}

// Images returns about how many images Each sends through networks.
func (l *Lineup) Images(t Targets) int64 {
	per, bn := t.images(), int64(l.BatchNorm.Images())
	members := int64(l.Members)
	runs := int64(len(l.Runs))
	if !l.Runs[0].Network.Recomputes() {
		bn = 0
	}
	total := bn // SWA's statistics, whatever is chosen
	for _, cost := range []struct {
		method string
		images int64
	}{
		{SGD, per}, {SGDs, per * int64(len(l.Runs[0].Iterates))}, {StaleSWA, per}, {SWA, per},
		{Dropout, members * per}, {Laplace, per + int64(l.BatchNorm.visited())},
		{Isotropic, members * (per + bn)}, {SWAGDiag, members * (per + bn)}, {SWAG, members * (per + bn)},
		{DeepSGD, runs * per}, {DeepSWA, runs * per}, {MultiSWAG, members * (per + bn)},
	} {
		if l.wants(cost.method) {
			total += cost.images
		}
	}
	if l.wants(SGD) && l.wants(SGDs) {
		total -= per // the last iterate is one of all
	}
	if l.wants(DeepSWA) || l.wants(MultiSWAG) {
		total += (runs - 1) * bn
	}
	if l.wants(Iterates) {
		for _, s := range l.Sequences {
			total += int64(len(s.Models)) * per
			if s.Recompute {
				total += int64(len(s.Models)) * (per + bn)
			}
		}
	}
	return total
}

// ParseMethods reads a list of methods separated by commas; "all" is all of them.
func ParseMethods(list string) ([]string, error) {
	var out []string
	for _, m := range strings.Split(list, ",") {
		switch m = strings.TrimSpace(m); {
		case m == "all":
			out = append(out, Methods...)
		case slices.Contains(Methods, m):
			out = append(out, m)
		default:
			return nil, fmt.Errorf("no method %q: want all, or some of %s", m, strings.Join(Methods, ", "))
		}
	}
	return out, nil
}
