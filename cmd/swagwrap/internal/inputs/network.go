// Package inputs opens the files that commands read: models, posteriors and data. It checks them, and prints the findings.
package inputs

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Env opens files for one run of the program.
type Env struct{ *flags.Env }

// Engine opens ONNX Runtime.
func (a *Env) Engine(c *cli.Context) (*infer.Engine, error) {
	provider, _, err := flags.Provider(c)
	if err != nil {
		return nil, err
	}
	rt, provider, err := a.chosenRuntime(c, provider)
	if err != nil {
		return nil, err
	}
	passes := ort.Provider{}
	if provider.GPU() {
		passes = provider
		passes.Precision = ort.F32 // float16 is too coarse for variances
	} else if provider.Precision == ort.BF16 { // the user's choice holds for batch-norm passes too
		if passes = provider; ort.FastBF16() == "" {
			a.Warnf(c, "%s: bf16 is emulated, and slower than f32", noBF16)
		}
	}
	memory := flags.Memory(c)
	e := &infer.Engine{Runtime: rt, Provider: provider, Passes: passes, BatchSize: c.Int("batch-size"), Workers: c.Int("threads"), Memory: memory}
	e.Slow = func(inside time.Duration, loops bool) {
		why := ""
		if loops {
			why = ": it has a Loop, which may not end"
		}
		a.Warnf(c, "one batch has been inside the network for %v%s", inside, why)
	}
	var mu sync.Mutex
	e.Left = map[string]int{}
	e.Placed = func(model string, p ort.Placement) {
		mu.Lock()
		defer mu.Unlock()
		for op, n := range p.Others {
			e.Left[op] += n
		}
		if others := p.String(); others != "" {
			a.Logf(c, "%s: %s", model, others)
		} else {
			a.Debugf(c, "%s: provider %s takes all nodes", model, provider.Name)
		}
	}
	return e, rt.Limit(infer.MemoryLimit(memory))
}

// chosenRuntime loads the library of the provider. auto takes CUDA's if it can be used, else WebGPU's, else the CPU's.
func (a *Env) chosenRuntime(c *cli.Context, p ort.Provider) (*ort.Runtime, ort.Provider, error) {
	if p.Name != ort.Auto {
		rt, err := a.openRuntime(c, p)
		return rt, p, err
	}
	var none *ort.LibraryError
	for _, p.Name = range []string{ort.CUDA, ort.WebGPU} {
		rt, err := a.openRuntime(c, p)
		if !errors.As(err, &none) {
			return rt, p, err
		}
		a.Debugf(c, "provider %s: %v", p.Name, err)
	}
	a.Logf(c, "provider cpu: %v", none)
	p = ort.Provider{Name: ort.CPU, Precision: ort.F32}
	if rt := ort.Loaded(); rt != nil { // that of a GPU that cannot be used: a process holds one
		return rt, p, nil
	}
	rt, err := a.openRuntime(c, p)
	return rt, p, err
}

// OpenNetwork opens a posterior and its graph.
func (a *Env) OpenNetwork(c *cli.Context, path string) (*infer.Network, error) {
	p, err := swag.Open(path)
	if err != nil {
		return nil, WrongKind(c, err, path, kind.Posterior)
	}
	return a.Network(c, p)
}

// Network checks a posterior and opens its network. After an error the posterior is closed.
func (a *Env) Network(c *cli.Context, p *swag.Posterior) (n *infer.Network, err error) {
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	for _, w := range p.Warnings {
		a.Warnf(c, "%s: %s", p.Path, w)
	}
	if err := p.Verify(); errors.As(err, new(*weights.ImplausibleError)) {
		return nil, flags.BadInput(err, "no fit writes such a number: another program made or changed the file; fit again from the checkpoints")
	} else if err != nil {
		return nil, flags.BadInput(err)
	}
	if scores := c.String("scores"); scores != "" {
		if was := p.Card.Scores; was != "" && was != scores {
			return nil, flags.Usagef("fit again with --scores "+scores, "--scores %s: the model card of %s says %s", scores, p.Path, was)
		}
		p.Card.Scores = scores
	}
	which := infer.RecomputeTrained
	if word := c.String("bn"); word != "" {
		if which, err = infer.ParseStatistics(word); err != nil {
			return nil, err
		}
	}
	if which == infer.RecomputeAll && p.Single() {
		return nil, flags.Usagef("leave out --bn", "--bn recompute: %s holds one checkpoint, and its batch-norm statistics belong to its weights", p.Path)
	}
	if n, err = infer.NewNetwork(p, which, c.String("output-name")); err != nil {
		return nil, flags.BadInput(err)
	}
	if len(p.Needs()) > 0 {
		if err := n.Attach(c.Context); err != nil {
			return nil, flags.BadInput(fmt.Errorf("%s: its deviations are in the checkpoints: %w", p.Path, err))
		}
	}
	if _, err := n.Gives(); errors.As(err, new(*task.AmbiguousTask)) { // a posterior of an older version
		a.Warnf(c, "%s: %v; they are taken for logits of classes, or of class 1 of two: fit again with --task to be sure", p.Path, err)
	}
	return n, nil
}

// RefuseSingle fails if a posterior holds one checkpoint. It is for commands that draw from the spread of several.
func RefuseSingle(p *swag.Posterior) error {
	if !p.Single() {
		return nil
	}
	return flags.Usagef(strings.Join([]string{
		"the network itself: " + singleCommand(p.Path),
		"for SWAG, save a checkpoint in each of 20 more epochs at a constant learning rate; swagwrap compare prints the lines for that",
	}, "\n"), "%s: %w", p.Path, swag.ErrSingle)
}

// singleCommand is the command that makes an ensemble of the network in a posterior of one checkpoint.
func singleCommand(path string) string {
	return study.Shell("swagwrap", "sample", "--method", "swa", "-o", "ensemble.safetensors", path)
}

// isSingle reports whether the file is a posterior of one checkpoint.
func isSingle(path string) bool {
	p, err := swag.Open(path)
	if err != nil {
		return false
	}
	defer p.Close()
	return p.Single()
}

// InputPosterior registers the posterior at path as an input, with the checkpoints that hold its deviations, and those
// that are members. It does not read the files further.
func InputPosterior(path string, members ...string) error {
	p, err := swag.Open(path)
	if err == nil {
		defer p.Close()
		for _, c := range p.Needs() {
			members = append(members, infer.CheckpointPath(p, c, ""))
		}
	}
	for _, m := range members {
		err = errors.Join(err, inputCheckpoint(m))
	}
	if both := (*file.Conflict)(nil); errors.As(err, &both) {
		return both
	}
	return nil // a later reader reports the error
}
