package checkpoints

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// A RoleRule gives a role to the tensors whose names match a pattern. It overrides everything else. It is for tensors
// that differ between checkpoints.
type RoleRule struct {
	Pattern string // a name; * matches any text
	Role    weights.Role

	match *regexp.Regexp
}

// ParseRoleRule reads NAME=parameter or NAME=buffer.
func ParseRoleRule(s string) (r RoleRule, err error) {
	i := strings.LastIndex(s, "=")
	if i <= 0 {
		return r, fmt.Errorf("%q: want NAME=parameter or NAME=buffer", s)
	}
	r.Pattern = s[:i]
	switch word := s[i+1:]; word {
	case weights.Parameter.String():
		r.Role = weights.Parameter
	case weights.Buffer.String():
		r.Role = weights.Buffer
	default:
		return r, fmt.Errorf("%q: role %q, want parameter or buffer", s, word)
	}
	r.match, err = nameMatching(r.Pattern)
	return r, err
}

// String is the inverse of [ParseRoleRule].
func (r RoleRule) String() string { return r.Pattern + "=" + r.Role.String() }

// roles decides the roles of the tensors that differ between checkpoints.
type roles struct {
	*Set
	rules    []RoleRule
	used     []bool // for each rule: it decided about a tensor
	declared map[string]onnxio.Declared
	spectral map[string]onnxio.SpectralNorm // by the names of u and v
	// statistics of batch norms that are written out in operators: the mean's name by the variance's, and back
	written   map[string]string
	variances map[string]*onnxio.Tensor // of these layers, by the names of both
	instance  map[string]bool
	roots     map[string]bool // the graph takes the root of it
	asked     []*onnxio.Tensor
	// initializers holds the names of the initializers of all graphs. Other tensors are in Constant nodes.
	initializers map[string]bool
	traced       bool // PyTorch wrote the model, and its weights as initializers
}

func (s *Set) newRoles(ref *onnxio.Model, rules []RoleRule) *roles {
	r := &roles{
		Set:          s,
		rules:        rules,
		used:         make([]bool, len(rules)),
		declared:     ref.Declared(),
		spectral:     make(map[string]onnxio.SpectralNorm),
		written:      make(map[string]string),
		variances:    make(map[string]*onnxio.Tensor),
		instance:     make(map[string]bool),
		roots:        make(map[string]bool),
		initializers: make(map[string]bool),
	}
	for _, g := range ref.Graphs() {
		for _, t := range g.Initializers {
			r.initializers[t.Name] = true
			r.traced = r.traced || ref.ProducerName == "pytorch" && t.IsFloat() && !onnxio.IsVector(t.Shape)
		}
	}
	for _, n := range ref.SpectralNorms() {
		r.spectral[n.U], r.spectral[n.V] = n, n
	}
	for _, bn := range ref.WrittenBatchNorms() {
		r.written[bn.Mean], r.written[bn.Var] = bn.Var, bn.Mean
		r.variances[bn.Mean], r.variances[bn.Var] = ref.Tensor(bn.Var), ref.Tensor(bn.Var)
	}
	for _, root := range ref.Roots() {
		r.roots[root.Tensor] = true
	}
	for _, name := range ref.InstanceStatistics() {
		r.instance[name] = true
	}
	return r
}

// decide returns a tensor's role, and the reason, which is "" for a parameter by default. The user's rules come
// first, then the exporter's declaration, then the graph, then the name and the values.
func (r *roles) decide(t *onnxio.Tensor) (weights.Role, string) {
	for i, rule := range r.rules {
		if rule.match.MatchString(t.Name) {
			r.used[i] = true
			return rule.Role, setting.Role.With(rule.String())
		}
	}
	declared := r.declared[t.Name]
	if declared.Kind == "PARAMETER" {
		return weights.Parameter, "the exporter says: a parameter"
	}
	spectral, isSpectral := r.spectral[t.Name]
	partner, isWritten := r.written[t.Name]
	switch {
	case isSpectral && r.unit(t):
		return weights.Buffer, fmt.Sprintf("spectral norm of %q: the graph divides that weight by u·Wv", spectral.Divided)
	case isWritten && r.normalises(t, partner):
		return weights.Statistic, "batch norm that the graph writes out in operators"
	case r.instance[t.Name]:
		return weights.Buffer, "running statistics of an InstanceNorm layer"
	case declared.Kind != "":
		return weights.Buffer, "the exporter says: no parameter (" + declared.Kind + ")"
	}
	if why := r.named(t.Name); why != "" {
		return weights.Buffer, why
	}
	if r.traced && !r.initializers[t.Name] && t.Len() > 1 { // code that takes a single number out of a weight leaves it there, too
		return weights.Buffer, "a Constant node holds it, and PyTorch's exporters keep parameters as initializers"
	}
	if slices.ContainsFunc(declared.Folded, func(name string) bool {
		return r.named(name) != ""
	}) && !slices.ContainsFunc(declared.Folded, r.isParameter) {
		return weights.Buffer, "the exporter computed it from running statistics: " + strings.Join(declared.Folded, ", ")
	}
	several := len(r.Models) > 1
	switch {
	case onnxio.IsVector(t.Shape) && t.Len() > 1 && (several || iterated.MatchString(t.Name)) && r.unit(t):
		return weights.Buffer, "length 1 in every checkpoint, like a vector of power iteration"
	case len(r.Models) > 2 && r.counts(t):
		return weights.Buffer, "whole numbers that never fall from one checkpoint to the next, like a counter"
	case !isWritten && r.asks(t):
		r.asked = append(r.asked, t)
	case isWritten:
		return weights.Parameter, "the graph uses it like a running statistic, but nothing says that it is no weight"
	}
	return weights.Parameter, ""
}

// bufferNames matches the last parts of names of running state. These are statistics of PyTorch's and Keras's layers,
// counters, moving averages, and queues as in MoCo.
var bufferNames = regexp.MustCompile(`^(running_(mean|var|std)|moving_(mean|var|variance)|num_batches_tracked|n_averaged|ema_.+|.+_ema|queue|queue_ptr)$`)

// iterated matches names that PyTorch gives to the vectors of spectral norm. A weight may have such a name too, so
// the name counts only together with length 1.
var iterated = regexp.MustCompile(`_[uv]$`)

// named returns the role that a name suggests, in words, or "".
func (r *roles) named(name string) string {
	last := name[strings.LastIndexAny(name, "./")+1:]
	if bufferNames.MatchString(last) {
		return "its name, " + last + ", is one of running state"
	}
	return ""
}

// running matches names that contain those of running statistics, and variances the names of variances.
var (
	running   = regexp.MustCompile(`(?i)(running|moving)_?(mean|var|std|avg|average)`)
	variances = regexp.MustCompile(`(?i)(^|[^a-z])var(iance)?([^a-z]|$)`)
)

// asks reports whether a vector has a name like a running statistic's, but neither its whole name nor the graph tells whether it is
// one.
func (r *roles) asks(t *onnxio.Tensor) bool {
	return onnxio.IsVector(t.Shape) && t.Len() > 1 && (running.MatchString(t.Name) || r.roots[t.Name] && variances.MatchString(t.Name))
}

// unasked fails for the first tensor whose role the user has to say.
func (r *roles) unasked(ref *onnxio.Model) error {
	if len(r.asked) == 0 {
		return nil
	}
	t := r.asked[0]
	role := func(word string) string { return setting.Fit.With(setting.Role.With(t.Name + "=" + word)) }
	return &onnxio.Error{
		Path:   ref.Path,
		Tensor: t.Name,
		What:   "its name is like that of a running statistic, and no batch norm that the graph shows has it",
		Hint: "export again with batch norm as one operator: docs/exporting.md has the call for each framework. Or say what it is: " +
			role("buffer") + " gives every member the last checkpoint's, and " + role("parameter") + " averages it",
	}
}

// isParameter reports whether a value that the exporter folded away has the name of a stored tensor, but not of a
// buffer.
func (r *roles) isParameter(name string) bool {
	return (strings.Contains(name, ".") || r.declared[name].Kind == "PARAMETER") && r.named(name) == ""
}

// unit reports whether a tensor has length 1 in every checkpoint.
func (r *roles) unit(t *onnxio.Tensor) bool {
	return r.every(t, func(values []float32) bool {
		sum, tolerance := 0.0, unitTolerance
		if !slices.ContainsFunc(values, func(v float32) bool { return math.Float32bits(v)&0x1fff != 0 }) {
			tolerance = narrowTolerance
		}
		for _, v := range values {
			sum += float64(v) * float64(v)
		}
		return math.Abs(math.Sqrt(sum)-1) < tolerance
	})
}

// Tolerances for the length of a normalised vector, which should be 1. Float32 rounds each element by at most 2⁻²⁴ of
// it, and PyTorch's sum by a few times that. The 16-bit types round by up to 2⁻⁹. In their numbers the last 13 bits
// of a float32 are clear.
const (
	unitTolerance   = 1e-5
	narrowTolerance = 0x1p-9
)

// counts reports whether a vector or number is whole in every checkpoint, and never smaller than in the checkpoint
// before.
func (r *roles) counts(t *onnxio.Tensor) bool {
	var before []float32
	return onnxio.IsVector(t.Shape) && r.every(t, func(values []float32) bool {
		for i, v := range values {
			if float64(v) != math.Trunc(float64(v)) || before != nil && v < before[i] {
				return false
			}
		}
		before = append(before[:0], values...)
		return true
	})
}

// normalises reports whether a tensor and its partner are the running mean and variance of a layer that the graph
// writes out. Learned weights could have the same formula. So both must differ between checkpoints, no rule may
// match them, and no variance may be negative. PyTorch's exporters keep the names that the author of the network gave. If
// these are not the names of running state, the tensors may be weights, unless the exporter says that they are not.
func (r *roles) normalises(t *onnxio.Tensor, partner string) bool {
	for _, name := range []string{t.Name, partner} {
		kind := r.declared[name].Kind
		byRule := slices.ContainsFunc(r.rules, func(rule RoleRule) bool { return rule.match.MatchString(name) })
		byAuthor := r.traced && strings.Contains(name, ".")
		if kind == "PARAMETER" || byRule || !r.differs(name) && len(r.Models) > 1 || byAuthor && kind == "" && r.named(name) == "" {
			return false
		}
	}
	variance := r.variances[t.Name]
	return r.every(variance, func(values []float32) bool {
		return !slices.ContainsFunc(values, func(v float32) bool { return v < 0 })
	})
}

// every reports whether a tensor's elements satisfy a condition in every checkpoint. It returns false for a tensor
// that is too large to be such state.
func (r *roles) every(t *onnxio.Tensor, is func(values []float32) bool) bool {
	if t.Len() == 0 || t.Len() > mostState {
		return false
	}
	values := make([]float32, t.Len())
	return r.always(func(k int) bool {
		m := r.Models[k]
		of := m.Tensor(t.Name)
		of.ElemType.DType().Float32s(values, m.Stretch(of, 0, of.Len()))
		r.read(len(values)*4, m)
		return is(values)
	})
}

// mostState is the largest number of elements for which a tensor's values help to decide its role.
const mostState = 1 << 24

// unused returns the first rule that no tensor matches, or nil.
func (r *roles) unused() *RoleRule {
	if i := slices.Index(r.used, false); i >= 0 {
		return &r.rules[i]
	}
	return nil
}
