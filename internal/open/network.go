package open

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Engine opens ONNX Runtime.
func (a *Opener) Engine(o RuntimeOptions) (*infer.Engine, error) {
	rt, provider, err := a.chosenRuntime(o)
	if err != nil {
		return nil, err
	}
	passes := ort.Provider{}
	if provider.GPU() {
		passes = provider
		passes.Precision = ort.F32 // float16 is too coarse for variances
	} else if provider.Precision == ort.BF16 { // the user's choice holds for batch-norm passes too
		if passes = provider; ort.FastBF16() == "" {
			a.Warnf("%s: bf16 is emulated, and slower than f32", noBF16)
		}
	}
	how := infer.EngineOptions{
		Provider:  provider,
		Passes:    passes,
		BatchSize: o.BatchSize,
		Threads:   o.Threads,
		Memory:    o.Memory,
		Left:      map[string]int{},
	}
	how.Slow = func(inside time.Duration, loops bool) {
		why := ""
		if loops {
			why = ": it has a Loop, which may not end"
		}
		a.Warnf("one batch has been inside the network for %v%s", inside, why)
	}
	var mu sync.Mutex
	how.Placed = func(model string, p ort.Placement) {
		mu.Lock()
		defer mu.Unlock()
		for op, n := range p.Others {
			how.Left[op] += n
		}
		if others := p.String(); others != "" {
			a.Logf("%s: %s", model, others)
		} else {
			a.Debugf("%s: provider %s takes all nodes", model, provider.Name)
		}
	}
	return infer.NewEngine(rt, how), rt.Limit(o.Memory.Limit())
}

// chosenRuntime loads the library of the provider. auto takes the first GPU's that can be used, else the CPU's.
func (a *Opener) chosenRuntime(o RuntimeOptions) (*ort.Runtime, ort.Provider, error) {
	p := o.Provider
	if p.Name != ort.Auto {
		rt, err := a.openRuntime(o.Library, p)
		return rt, p, err
	}
	var none *ort.LibraryError
	for _, p.Name = range ort.GPUs() {
		rt, err := a.openRuntime(o.Library, p)
		if !errors.As(err, &none) {
			return rt, p, err
		}
		a.Debugf("provider %s: %v", p.Name, err)
	}
	a.Logf("provider cpu: %v", none)
	p = ort.Provider{Name: ort.CPU, Precision: ort.F32}
	if rt := ort.Loaded(); rt != nil { // that of a GPU that cannot be used: a process holds one
		return rt, p, nil
	}
	rt, err := a.openRuntime(o.Library, p)
	return rt, p, err
}

// OpenNetwork opens a posterior and its graph.
func (a *Opener) OpenNetwork(ctx context.Context, o NetworkOptions, path string) (*infer.Network, error) {
	p, err := swag.Open(path)
	if err != nil {
		return nil, WrongKind(err, path, kind.Posterior)
	}
	return a.Network(ctx, o, p)
}

// Network checks a posterior and opens its network. After an error the posterior is closed.
func (a *Opener) Network(ctx context.Context, o NetworkOptions, p *swag.Posterior) (n *infer.Network, err error) {
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	for _, w := range p.Warnings {
		a.Warnf("%s: %s", p.Path, w)
	}
	if err := p.Verify(); errors.As(err, new(*weights.ImplausibleError)) {
		return nil, BadInput(err, "no fit writes such a number: another program made or changed the file; fit again from the checkpoints")
	} else if err != nil {
		return nil, BadInput(err)
	}
	if err := o.giveTask(&p.Card, p.Path); err != nil {
		return nil, err
	}
	if scores := o.Scores; scores != "" {
		if was := p.Card.Scores; was != "" && was != scores {
			return nil, Usagef("fit again with "+setting.Scores.With(scores), "%s: the model card of %s says %s",
				setting.Scores.With(scores), p.Path, was)
		}
		p.Card.Scores = scores
	}
	if o.Statistics == infer.RecomputeAll && p.Single() {
		return nil, Usagef("leave out "+setting.BN.String(),
			"%s: %s holds one checkpoint, and its batch-norm statistics belong to its weights", setting.BN.With("recompute"), p.Path)
	}
	if n, err = infer.NewNetwork(p, o.Statistics, o.Output); err != nil {
		return nil, BadInput(err)
	}
	if len(p.Needs()) > 0 {
		if err := n.Attach(ctx); err != nil {
			return nil, BadInput(fmt.Errorf("%s: its deviations are in the checkpoints: %w", p.Path, err))
		}
	}
	if _, err := n.Gives(); errors.As(err, new(*task.AmbiguousTask)) { // a posterior of an older version
		a.Warnf("%s: %v; they are taken for logits of classes, or of class 1 of two: fit again with %s to be sure", p.Path,
			err, setting.Task)
	}
	return n, nil
}

// giveTask sets the task of a model card that has none.
func (o NetworkOptions) giveTask(card *swag.Card, path string) error {
	switch {
	case o.Task == "" || o.Task == card.Task:
		return nil
	case !task.Scoreless(card.Task):
		return Usagef("leave out "+setting.Task.String()+", or fit again with it", "%s: the model card of %s says %s",
			setting.Task.With(o.Task), path, card.Task)
	case task.TraitsOf(o.Task).Targets && card.Targets == nil:
		return Usagef("fit with "+setting.Both(setting.Task.With(o.Task), setting.Targets.With("head=none")),
			"%s: the model card of %s says nothing about targets", setting.Task.With(o.Task), path)
	}
	card.Task = o.Task
	return nil
}

// GiveTask is what the options say about an ensemble's own card.
func (o NetworkOptions) GiveTask(e *ensemble.Ensemble) error { return o.giveTask(&e.Card, e.Path) }

// RefuseScoreless fails if nothing says what the network's outputs mean. It is for commands that compare them with labels.
func RefuseScoreless(n *infer.Network, path string) error {
	if !n.Scoreless() {
		return nil
	}
	return Usagef(task.NoScoresHint(), "%w", task.NoScores(path))
}

// RefuseSingle fails if a posterior holds one checkpoint. It is for commands that draw from the spread of several.
func RefuseSingle(p *swag.Posterior) error {
	if !p.Single() {
		return nil
	}
	return &Error{Usage: true, Err: &SingleError{p.Path}}
}

// Sampler returns what draws the members of a posterior. It fails if the posterior cannot give them.
func Sampler(p *swag.Posterior, how swag.SampleOptions) (*swag.Sampler, error) {
	if how.Scale > 0 {
		if err := RefuseSingle(p); err != nil {
			return nil, err
		}
	}
	s, err := swag.NewSampler(p, how)
	if err != nil {
		return nil, Usagef("", "%w", err)
	}
	return s, nil
}

// A SingleError is the error of a posterior of one checkpoint where a spread of several is needed.
type SingleError struct{ Path string }

func (e *SingleError) Error() string { return fmt.Sprintf("%s: %v", e.Path, swag.ErrSingle) }
func (e *SingleError) Unwrap() error { return swag.ErrSingle }

// InputPosterior registers the posterior at path as an input, with the checkpoints that hold its deviations. It does not
// read the files further. A command that opens the posterior soon does not need it.
func InputPosterior(path string) error {
	p, err := swag.Open(path)
	if err != nil {
		return conflict(err)
	}
	defer p.Close()
	var deviations []string
	for _, c := range p.Needs() {
		deviations = append(deviations, infer.CheckpointPath(p, c, ""))
	}
	return InputCheckpoints(deviations)
}

// InputCheckpoints registers checkpoints as inputs, which may be read much later.
func InputCheckpoints(paths []string) (err error) {
	for _, path := range paths {
		err = errors.Join(err, inputCheckpoint(path))
	}
	return conflict(err)
}

// conflict returns the part of err that says that an output is an input too.
func conflict(err error) error {
	if both := (*file.Conflict)(nil); errors.As(err, &both) {
		return both
	}
	return nil // a later reader reports the error
}

// The versions that every accepted release of ONNX Runtime takes.
const (
	oldOpset, newOpset = 7, 21
	newIR              = 10
)

// unimplemented matches ONNX Runtime's words for an operator that it knows, but not with these types.
var unimplemented = regexp.MustCompile(`Could not find an implementation for (\w+)\(\d+\) node with name '([^']*)'`)

// Takes fails if the chosen ONNX Runtime cannot load a network, so that nothing is written that no later command can use. It opens
// a session only for versions of ONNX that not every release takes. Without ONNX Runtime nothing is known.
func Takes(ctx context.Context, a *Opener, o RuntimeOptions, m *onnxio.Model) error {
	if m.IRVersion <= newIR && m.Opset >= oldOpset && m.Opset <= newOpset {
		return nil
	}
	rt, _, err := a.chosenRuntime(o)
	if errors.As(err, new(*ort.LibraryError)) {
		a.Debugf("%s: not asked whether ONNX Runtime takes opset %d and IR %d: %v", m.Path, m.Opset, m.IRVersion, err)
		return nil
	}
	if err != nil {
		return err
	}
	filled, err := m.Runtime()
	if err != nil {
		return err
	}
	session, err := rt.NewFilledSession(ctx, filled, ort.Options{Threads: 1})
	if err == nil {
		return session.Close()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	hint := fmt.Sprintf("export again for an opset of %d to %d, such as torch.onnx.export(..., opset_version=20)", oldOpset, newOpset)
	if m.Opset >= oldOpset && m.Opset <= newOpset {
		hint = fmt.Sprintf("the file is right without its new version: model = onnx.load(path); model.ir_version = %d; "+
			"onnx.save(model, path)", newIR)
	}
	if op := unimplemented.FindStringSubmatch(err.Error()); op != nil {
		hint = fmt.Sprintf("it has no %s for the types of node %q, whatever the opset. Store the tensors that this node reads as float32 "+
			"or float16, and export the network without it", op[1], op[2])
	}
	return &onnxio.Error{
		Path: m.Path,
		What: fmt.Sprintf("ONNX Runtime %s does not take this network of opset %d and IR %d", rt.Version(), m.Opset, m.IRVersion),
		Err:  err,
		Hint: hint + rt.Newer(),
	}
}
