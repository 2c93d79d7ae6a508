// Package diagnosis describes models. It says whether they can form a posterior, and if not, why and what to do. It
// also says whether SWAG can describe a trajectory of weights.
package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
	"github.com/swagwrap/swagwrap/weights"
)

// Diagnosis is the description of models, also as JSON.
type Diagnosis struct {
	Producer   string           `json:"producer"`
	Opset      int64            `json:"opset"`
	IRVersion  int64            `json:"ir_version"`
	Bytes      int64            `json:"bytes"` // size of the first file, including its data files
	Inputs     []tensorInfo     `json:"inputs"`
	Outputs    []tensorInfo     `json:"outputs"`
	Takes      string           `json:"takes"`              // what the input permits, in words
	Gives      string           `json:"gives"`              // what the output is, in words
	Features   []string         `json:"features,omitempty"` // tensors for ood --features, the default last
	Parameters int64            `json:"parameters"`
	BatchNorms int              `json:"batch_norm_layers"`
	Tensors    []weights.Tensor `json:"tensors"`
	Files      []fileInfo       `json:"files"`
	Duplicates [][2]string      `json:"duplicates"`
	Warnings   []string         `json:"warnings"`
	Usable     bool             `json:"usable"`
	Verdict    string           `json:"verdict"`
	Hints      []string         `json:"hints"`

	NeedsOutput bool `json:"-"` // nothing tells which output has the scores
	AllTensors  bool `json:"-"` // [Diagnosis.WriteText] lists each, however many there are

	twins [][2]*onnxio.Model // the Duplicates
}

// fileInfo describes one checkpoint of a set.
type fileInfo struct {
	Path, SHA256 string
	Norm         *float64 // Euclidean norm of its parameters
	Moved        *float64 // distance from the previous checkpoint, relative to the norm
	Implausible  int64    // parameters that are not weights.Plausible
}

type tensorInfo struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"` // -1 for a dynamic dimension
	dims  []string
}

// Diagnose examines models, which must be in training order.
func Diagnose(ctx context.Context, models []*onnxio.Model) (*Diagnosis, error) {
	first := models[0]
	d := &Diagnosis{Producer: strings.TrimSpace(first.ProducerName + " " + first.ProducerVersion), Opset: first.Opset,
		IRVersion: first.IRVersion, Bytes: first.Size(), Inputs: infos(first.FeedInputs()), Outputs: infos(first.Graph.Outputs),
		Tensors: []weights.Tensor{}, Duplicates: [][2]string{}, Warnings: []string{}, Hints: []string{}}
	sums, err := checkpoints.Sums(ctx, models, nil)
	if err != nil {
		return nil, err
	}
	for i, m := range models {
		d.Files = append(d.Files, fileInfo{Path: m.Path, SHA256: sums[i]})
	}
	for _, twins := range checkpoints.Twins(sums) {
		a, b := models[twins[0]], models[twins[1]]
		d.twins = append(d.twins, [2]*onnxio.Model{a, b})
		d.Duplicates = append(d.Duplicates, [2]string{a.Path, b.Path})
	}
	bns, err := first.BatchNorms()
	d.BatchNorms = len(bns)
	var set *checkpoints.Set
	if err == nil {
		if set, err = checkpoints.New(models); err == nil {
			d.Tensors, d.Parameters = set.Layout.Tensors, set.Layout.Len(weights.Parameter)
			d.BatchNorms += written(set.Layout)
			if err := d.readIterates(ctx, set); err != nil {
				return nil, err
			}
		}
	}
	d.warn(first, bns, set)
	d.judge(models, err)
	if d.Usable {
		d.describe(first, set.Layout)
	}
	return d, nil
}

// Reject says that the models are not usable for a reason that Diagnose does not see.
func (d *Diagnosis) Reject(err error) { d.judge(nil, err) }

// describe sets what the network takes and gives. It judges again if the output cannot be predictions.
func (d *Diagnosis) describe(m *onnxio.Model, l *weights.Layout) {
	chosen, err := infer.ChooseOutput(m, swag.Card{})
	if several := (*infer.SeveralOutputs)(nil); errors.As(err, &several) {
		d.Gives, d.Hints, d.NeedsOutput = several.Error(), append(d.Hints, several.Hints()...), true
		return
	}
	var g *infer.Graph
	if err == nil {
		g, err = infer.ReadGraph(m, chosen.Output, swag.Card{})
	}
	if err == nil {
		g.Judge(m, l)
		d.Takes, d.Features = g.Takes(), m.FeatureTensors(g.Output())
		d.Gives, err = g.Gives()
	}
	if open := new(task.AmbiguousTask); errors.As(err, &open) {
		d.Gives, d.Hints = open.Error()+g.Told(), append(d.Hints, open.Hints()...)
		if open.Activation != "" {
			d.Hints = append(d.Hints, OtherOutputs(m, chosen.Output)...)
		}
	} else if err != nil {
		if other, none := infer.ReadGraph(m, "", swag.Card{Task: task.None}); none == nil && infer.GivesFloats(m) {
			d.Takes, d.Gives = other.Takes(), fmt.Sprintf("nothing that a task can score: %v", err)
			d.Hints = append(d.Hints, task.ForNone())
			return
		}
		d.judge(nil, err)
		d.Hints = append(d.Hints, OtherOutputs(m, chosen.Output)...)
	}
}

// Unread returns a warning for each input whose values change nothing.
func Unread(m *onnxio.Model) (warnings []string) {
	for _, name := range m.Unread() {
		warnings = append(warnings, fmt.Sprintf("input %q: no node reads more than its shape, so that its values change nothing. Was "+
			"one tensor given for two arguments at export? Give each its own", name))
	}
	return warnings
}

// OtherOutputs returns a hint for a model whose scores are not those of an output.
func OtherOutputs(m *onnxio.Model, not string) []string {
	var names []string
	for _, o := range m.Graph.Outputs {
		if o.Name != not {
			names = append(names, strconv.Quote(o.Name))
		}
	}
	if names == nil {
		return nil
	}
	return []string{"the network has other outputs, which " + setting.Fit.With(setting.OutputName.String()) + " takes: " +
		strings.Join(names, ", ")}
}

// readIterates measures the distances between the checkpoints.
func (d *Diagnosis) readIterates(ctx context.Context, set *checkpoints.Set) error {
	var thetas []weights.Vector
	for _, m := range set.Models {
		theta, err := m.Vector(set.Layout, weights.Parameter)
		if err != nil {
			return err
		}
		thetas = append(thetas, theta)
	}
	steps, err := trajectory.Steps(ctx, thetas, func() {
		for _, m := range set.Models {
			m.Release()
		}
	})
	if err != nil {
		return err
	}
	for i, s := range steps {
		f := &d.Files[i]
		f.Norm, f.Implausible = study.Finite(s.Norm), s.Implausible
		if i > 0 {
			f.Moved = study.Finite(s.Moved / s.Norm)
		}
		if s.Implausible > 0 && d.Verdict == "" {
			err := set.Layout.Sound(weights.Parameter, []float32{s.Value}, s.First)
			d.Verdict = fmt.Sprintf("not usable: %s: %v; %d such values in all", f.Path, err, s.Implausible)
			d.Hints = append(d.Hints, checkpoints.Diverged)
		}
	}
	return nil
}

// enough is the number of checkpoints for the paper's rank.
const enough = swag.DefaultRank

// warn collects problems that the user should know but that are not fatal.
func (d *Diagnosis) warn(first *onnxio.Model, bns []onnxio.BatchNorm, set *checkpoints.Set) {
	add := func(format string, args ...any) { d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...)) }
	if n := len(d.Files); n > 1 && n < enough {
		add("%d checkpoints: the covariance has rank %d, and %d or more are better", n, n, enough)
	}
	if set != nil && set.ByPlace {
		add("tensors have other names in other files, and were matched by their place in the graph")
	}
	d.Warnings = append(d.Warnings, Unread(first)...)
	for _, in := range first.FeedInputs() {
		if len(bns) > 0 && len(in.Shape) > 0 && in.Shape[0] >= 0 && in.Shape[0] < 16 {
			add("input %q takes batches of %d only: batch-norm statistics need larger ones, in which the graph is run if it allows; "+
				"export with a dynamic batch dimension", in.Name, in.Shape[0])
		}
	}
	for i, x := range first.AcrossBatch() {
		if x.Certain {
			add("node %s normalises by the batch: an example's scores depend on the others in its batch. Train with running statistics "+
				"(PyTorch: track_running_stats=True), or choose %s and a random order", x.Node, setting.BatchSize)
			break
		} else if i == 0 {
			add("node %s computes over the first axis. If that is the batch, an example's scores depend on the others in its batch; %s "+
				"and %s see it when they run", x.Node, setting.Score, setting.Compare)
		}
	}
	if mode := TrainingMode(first); mode != "" {
		add("%s", mode)
	}
}

// TrainingMode says how a graph shows that it was exported in training mode, or returns "". Nothing is wrong: everything that is
// written is brought back to inference.
func TrainingMode(m *onnxio.Model) string {
	bns, _ := m.BatchNorms() // what is wrong with them is told where they are read
	const back = ": everything swagwrap writes is brought back to inference"
	training := slices.ContainsFunc(bns, func(bn onnxio.BatchNorm) bool { return bn.IsTraining })
	switch {
	case onnxio.ActiveDropout(m):
		shows := " (Dropout is active)"
		if len(bns) > 0 && !training {
			shows = " (Dropout is active, but batch norm is in evaluation mode)"
		}
		return "the graph was exported in training mode" + shows + back + ". Members score without dropout; only the row swa-dropout of " +
			setting.Compare.String() + " drops. Export after model.eval() if you do not want that row"
	case training:
		return "the graph was exported in training mode" + back
	}
	return ""
}

// judge sets the verdict. The argument err is the error of laying out the models, or nil.
func (d *Diagnosis) judge(models []*onnxio.Model, err error) {
	_, folding := Folded(models)
	var model *onnxio.Error
	switch {
	case folding != nil:
		d.Verdict, d.Hints = "not usable: "+folding.String(), FoldingHints(folding)
	case errors.As(err, &model):
		d.Usable, d.Verdict = false, "not usable: "+model.Error()
		if model.Hint != "" {
			d.Hints = strings.Split(model.Hint, "\n")
		}
	case err != nil:
		d.Usable, d.Verdict = false, "not usable: "+err.Error()
	case len(d.Duplicates) > 0:
		d.Verdict = fmt.Sprintf("not usable: %s and %s are the same", d.Duplicates[0][0], d.Duplicates[0][1])
		d.Hints = append(d.Hints, checkpoints.GivenOnce(d.twins[0][0], d.twins[0][1]))
	case d.Verdict != "": // set by readIterates
	case d.Parameters == 0 && len(d.Files) > 1:
		d.Verdict = "not usable: no tensor differs between the files"
	case d.Parameters == 0:
		d.Verdict = "not usable: no floating-point weights in it"
	default:
		d.Usable = true
		d.Verdict = "usable"
		if len(d.Warnings) > 0 {
			d.Verdict = "usable with warnings"
		}
		if n := len(d.Files); n > 1 {
			d.Verdict += fmt.Sprintf(": %d checkpoints of one network", n)
		} else {
			d.Verdict += ", with more checkpoints of the same network"
		}
	}
}

// Folded returns the first model with folded batch norm, and the evidence for it.
func Folded(models []*onnxio.Model) (path string, sign *onnxio.Folding) {
	for _, m := range models {
		if sign := m.FoldedBatchNorm(); sign != nil {
			return m.Path, sign
		}
	}
	return "", nil
}

// FoldingHints explains why folded batch norm is a problem, and how to avoid it.
func FoldingHints(f *onnxio.Folding) []string {
	return []string{
		"every sampled network needs batch-norm statistics of its own. In these files they are multiplied into the weights and cannot " +
			"be recomputed: averaged weights would predict worse than any checkpoint, and sampled ones worse still",
		"export the checkpoints again with batch norm kept: " + f.Keep,
	}
}
