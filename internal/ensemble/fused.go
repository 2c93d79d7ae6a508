package ensemble

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Fused is an ensemble, or some of its members, as one ONNX model. The model gives the same average as a [Scorer].
type Fused struct {
	Ensemble *Ensemble
	Networks []*infer.Network // of the ensemble's components
	Members  []int            // numbers in ascending order
	// Pixels makes the model take 8-bit pixels of shape [batch, height, width, channels], with the channels red, green,
	// blue. The model then preprocesses them itself.
	Pixels bool
	// Storage, External, Producer and Version are as in [fused.Options].
	Storage           fused.Storage
	External          bool
	Producer, Version string
	Half              bool // members compute in float16, with float16 weights; the average is computed in float32
	// Ranges makes members compute in 8 bits. They are those of values inside each of Members: see [Fused.Calibrate].
	Ranges  []map[string]fused.Range
	Figures string // measured for this ensemble, as JSON, or ""
	// Examples show how the networks compute, where their graphs do not tell. nil stands for noise.
	Examples dataset.Dataset

	tasks []task.Fusable // of the networks, for one position
	whole task.Task      // of an example
}

// Model plans the model. e runs the networks if their graphs alone do not tell enough; see [Fused.Needs].
func (j *Fused) Model(ctx context.Context, e *infer.Engine) (*fused.Model, error) {
	if err := j.learn(ctx, e); err != nil {
		return nil, err
	}
	if err := j.Ensemble.CheckCalibration(j.tasks[0]); err != nil {
		return nil, err
	}
	if err := checkThreshold(j.Ensemble.Path, j.Ensemble.Threshold, j.tasks[0]); err != nil {
		return nil, err
	}
	if g := j.Ensemble.Guarantee; !g.Empty() {
		if err := g.Check(j.whole); err != nil {
			return nil, fmt.Errorf("%s: %w", j.Ensemble.Path, err)
		}
	}
	var networks []*fused.Network
	place := make(map[int]int) // index of each component's network in networks
	var members []fused.Member
	for _, k := range j.Members {
		i, row := j.Ensemble.Find(k)
		if _, ok := place[i]; !ok {
			n, err := j.network(ctx, e, i)
			if err != nil {
				return nil, err
			}
			place[i] = len(networks)
			networks = append(networks, n)
		}
		member := fused.Member{Number: k, Network: place[i], Statistics: j.Ensemble.Components[i].Statistics[row]}
		if j.Ranges != nil {
			member.Ranges = j.Ranges[len(members)]
		}
		members = append(members, member)
	}
	metadata, err := j.metadata()
	if err != nil {
		return nil, err
	}
	m, err := fused.New(networks, members, fused.Options{
		Storage:  j.Storage,
		External: j.External,
		Producer: j.Producer,
		Version:  j.Version,
		Metadata: metadata,
	})
	if err != nil {
		return nil, err
	}
	if j.Pixels {
		if err := j.takePixels(m); err != nil {
			return nil, err
		}
	}
	scores, finite, gives, flags := m.Scores, m.Finite, m.Gives, m.GivesFlags
	if n := j.Networks[0]; n.Large() {
		p := m.NewPositions(n.Axis(), n.Axes())
		scores, finite, gives, flags = p.Scores, p.Finite, p.Gives, p.GivesFlags
	}
	var record []task.MemberOutcome
	for at, k := range j.Members {
		i, _ := j.Ensemble.Find(k)
		record = append(record, j.tasks[i].Say(m, scores(at)))
	}
	outputs := task.Visible(m, j.tasks[0].Fuse(m, record, j.weights(), j.Ensemble.Calibration), finite())
	for _, o := range outputs {
		if err := gives(o.Name, o.Value, int64(o.Width)); err != nil {
			return nil, err
		}
	}
	guaranteed, err := j.guaranteed().Fuse(m, j.tasks[0], outputs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.Ensemble.Path, err)
	}
	for _, o := range guaranteed {
		give := gives
		if o.Flags {
			give = flags
		}
		if err := give(o.Name, o.Value, int64(o.Width)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// NotGuaranteed returns why the model has none of the guarantees of the ensemble, or "": they are for the average over all members, as
// its file has them.
func (j *Fused) NotGuaranteed() string {
	why := j.Ensemble.Guarantee.Void(guarantee.Made{})
	switch {
	case j.Ensemble.Guarantee.Empty():
		return ""
	case len(j.Members) < j.Ensemble.Members():
		return fmt.Sprintf("what it guarantees is of all %d members", j.Ensemble.Members())
	case why != nil:
		return "its guarantee is void for the model: " + strings.Join(why, "; ")
	}
	return ""
}

// guaranteed returns what the model guarantees.
func (j *Fused) guaranteed() *guarantee.Guarantee {
	if j.NotGuaranteed() != "" {
		return nil
	}
	return j.Ensemble.Guarantee
}

// Task returns the task of an example, which [Fused.Model] finds.
func (j *Fused) Task() task.Task { return j.whole }

// Adopt takes what another plan of the same networks has learned about their task.
func (j *Fused) Adopt(o *Fused) { j.tasks, j.whole = o.tasks, o.whole }

// Guarantees says what the model guarantees, or "".
func (j *Fused) Guarantees() string {
	if g := j.guaranteed(); !g.Empty() {
		return g.Guarantees(j.whole)
	}
	return ""
}

// Needs reports whether [Fused.Model] must run the networks.
func (j *Fused) Needs() bool {
	return slices.ContainsFunc(j.Networks, func(n *infer.Network) bool {
		return n.FixedBatch() || n.Layout().Count == 0 && n.Known() == nil
	})
}

// learn finds the task of each network.
func (j *Fused) learn(ctx context.Context, e *infer.Engine) error {
	j.tasks = nil
	for _, n := range j.Networks {
		t := n.Known()
		var err error
		switch {
		case t != nil:
		case n.Layout().Count > 0:
			t, err = n.Task(n.Layout())
		default:
			err = e.Learn(ctx, n)
			t = n.Known()
		}
		if err != nil {
			return err
		}
		if j.tasks == nil {
			j.whole = t
		}
		t = task.OnePosition(t)
		fusable, ok := t.(task.Fusable)
		if !ok {
			return fmt.Errorf("%s: members of the task %q cannot be one model yet", j.Ensemble.Path, t.About().Name)
		}
		if first := append(j.tasks, fusable)[0]; fusable.About().Width != first.About().Width {
			return fmt.Errorf("%s: %s, want %s as in %s", n.Posterior.Path, fusable.About().Meaning, first.About().Meaning,
				j.Networks[0].Posterior.Path)
		}
		j.tasks = append(j.tasks, fusable)
	}
	return nil
}

// network prepares the network of component i.
func (j *Fused) network(ctx context.Context, e *infer.Engine, i int) (*fused.Network, error) {
	read := fused.NewNetwork
	switch {
	case j.Half:
		read = fused.NewHalf
	case j.Ranges != nil:
		read = fused.NewQDQ
	}
	n, err := j.Networks[i].Fused(ctx, e, j.Examples, read)
	if err != nil {
		return nil, err
	}
	s, err := swag.NewSampler(j.Networks[i].Posterior, swag.SampleOptions{}) // scale 0: the mean
	if err != nil {
		return nil, err
	}
	n.Mean = s.Vector(ctx, 0)
	return n, nil
}

// weights returns the weights of the members, which add up to 1. If only some members of a component are chosen, they
// share the weight of the whole component.
func (j *Fused) weights() []float64 {
	chosen := make(map[int]int)
	for _, k := range j.Members {
		i, _ := j.Ensemble.Find(k)
		chosen[i]++
	}
	total := 0.0
	for _, i := range slices.Sorted(maps.Keys(chosen)) {
		total += j.Ensemble.Components[i].Weight
	}
	out := make([]float64, len(j.Members))
	for at, k := range j.Members {
		i, _ := j.Ensemble.Find(k)
		out[at] = j.Ensemble.Components[i].Weight / total / float64(chosen[i])
	}
	return out
}

// metadata returns the properties of the model. docs/formats.md lists them.
func (j *Fused) metadata() (map[string]string, error) {
	e := j.Ensemble
	origin := &Origin{Producer: j.Producer + " " + j.Version}
	origin.SetEnsemble(e)
	for i, n := range j.Networks {
		origin.From(e.Components[i].Posterior.Path, n.Posterior)
	}
	out, err := ModelMetadata(ModelEnsemble, e.Card, origin, nil)
	if err != nil {
		return nil, err
	}
	out["swagwrap.ensemble"] = e.ID
	out["swagwrap.members"] = Ranges(j.Members)
	out["swagwrap.task"] = j.tasks[0].About().Name
	out["swagwrap.storage"] = map[fused.Storage]string{fused.Float32: "f32", fused.Int8: "int8"}[j.Storage]
	switch {
	case j.Half:
		out["swagwrap.dtype"] = "f16"
	case j.Ranges != nil:
		out["swagwrap.dtype"] = "int8"
	}
	if j.Figures != "" {
		out[KeyFigures] = j.Figures
	}
	if j.Pixels {
		out[KeyInput] = InputPixels
	}
	if e.Threshold > 0 {
		out["swagwrap.threshold"] = strconv.FormatFloat(e.Threshold, 'g', -1, 64)
	}
	if g := j.guaranteed(); !g.Empty() {
		js, err := json.Marshal(struct {
			Text string `json:"promise"`
			*guarantee.Guarantee
		}{j.Guarantees(), g})
		if err != nil {
			return nil, err
		}
		out[KeyGuarantee] = string(js)
	}
	if c := e.Calibration; c != nil {
		js, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		out[KeyCalibration] = string(js)
	}
	if l := e.Labelled; l != nil && len(j.Members) == e.Members() {
		js, err := json.Marshal(l.Training())
		if err != nil {
			return nil, err
		}
		out[keyTraining] = string(js)
	}
	return out, nil
}

// Ranges formats ascending numbers as "0-9,12".
func Ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		end := i
		for end+1 < len(numbers) && numbers[end+1] == numbers[end]+1 {
			end++
		}
		s := strconv.Itoa(numbers[i])
		if end > i {
			s += "-" + strconv.Itoa(numbers[end])
		}
		parts = append(parts, s)
		i = end + 1
	}
	return strings.Join(parts, ",")
}

// ParseRanges parses numbers such as "0-9,12". Each must be in [0, n), and larger than the one before.
func ParseRanges(s string, n int) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		switch {
		case err != nil || err2 != nil || first > last:
			return nil, fmt.Errorf("%q: want numbers such as 0-9 or 0,3,5-7", s)
		case first < 0 || last >= n:
			return nil, fmt.Errorf("%q: want members from 0 to %d", s, n-1)
		case len(out) > 0 && first <= out[len(out)-1]:
			return nil, fmt.Errorf("%q: want ascending numbers", s)
		}
		for k := first; k <= last; k++ {
			out = append(out, k)
		}
	}
	return out, nil
}

// Write writes the files of the model. name is the name of the model file. Members are drawn while they are written.
func (j *Fused) Write(ctx context.Context, m *fused.Model, name string, create func(file string) (io.Writer, error), workers int,
	b *memory.Budget) error {
	return m.Write(name, create, func(do func(weights.Vector) error) error {
		return j.members(workers, b).each(ctx, 0, len(j.Members), func(_ int, m Member) error { return do(m.Parameters) })
	})
}

func (j *Fused) members(workers int, b *memory.Budget) *memberSource {
	return &memberSource{e: j.Ensemble, networks: j.Networks, numbers: j.Members, weights: j.weights(), workers: workers, memory: b}
}
