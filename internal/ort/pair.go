package ort

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/onnxio"
)

// maxShared is the number of networks whose sessions stay open while no member uses them.
const maxShared = 4

// A pair of parts serves all members of one network: see [onnxio.Parameterized]. The part Run has a session for batches of one size.
// ONNX Runtime then computes shapes once, and not in each run. All other sizes share one more session, which is opened for
// the first of them.
type pair struct {
	key             shareKey
	parameterized   *onnxio.Parameterized
	inputs, outputs []ValueInfo // of the part Run, as the model declares them, without the weights
	prepare, carry  *Session
	uses            int // members; guarded by Runtime.shares

	open        func(ctx context.Context, run []byte) (*Session, error) // opens the part Run
	mu          sync.RWMutex                                            // of the fields below; held for reading by runs
	fixed, free *Session                                                // nil if not open
}

// shareKey names a pair.
type shareKey struct {
	template *onnxio.Template
	outputs  string
	provider Provider
	threads  int
	batch    int
}

// shares are the pairs of a runtime, the one that was used last at the end.
type shares struct {
	sync.Mutex
	pairs []*pair
}

// share returns the pair of a network, and opens it for the first member. A profile is of one member.
func (r *Runtime) share(ctx context.Context, f onnxio.Filled, parameterized *onnxio.Parameterized, opts Options) (*pair, error) {
	key := shareKey{f.Template, strings.Join(opts.Outputs, "\x00"), opts.Provider, opts.Threads, opts.Batch}
	r.shares.Lock()
	defer r.shares.Unlock()
	if i := slices.IndexFunc(r.shares.pairs, func(p *pair) bool { return p.key == key }); i >= 0 && opts.profile == "" {
		p := r.shares.pairs[i]
		p.uses++
		r.shares.pairs = append(slices.Delete(r.shares.pairs, i, i+1), p)
		return p, nil
	}
	p := &pair{key: key, parameterized: parameterized, uses: 1}
	open := func(ctx context.Context, model []byte, opts Options, given int) (*Session, error) {
		m, err := onnxio.Parse(f.Template.Files()[0], model)
		if err != nil {
			return nil, err
		}
		sig := m.Signature()
		inputs, outputs := valueInfos(sig.Inputs), valueInfos(sig.Outputs)
		if outputs, err = selectOutputs(outputs, opts.Outputs); err == nil && given > 0 {
			err = checkSignature(inputs[:len(inputs)-given], outputs)
		}
		if err != nil {
			return nil, err
		}
		opts.bound = true
		return r.load(ctx, model, sig, "", int64(len(model))+f.Template.Size(), opts)
	}
	p.open = func(ctx context.Context, run []byte) (*Session, error) {
		s, err := open(ctx, run, opts, len(parameterized.Names))
		if err == nil {
			r.copied.sessions.Add(1)
		}
		return s, err
	}
	err := p.first(ctx, opts.profile)
	first := opts
	first.Outputs, first.profile = parameterized.Outputs, ""
	if err == nil {
		p.prepare, err = open(ctx, parameterized.Prepare, first, 0)
	}
	if err == nil {
		first.Outputs = nil
		p.carry, err = open(ctx, parameterized.Carry, first, 0)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	if opts.profile == "" {
		r.shares.pairs = append(r.shares.pairs, p)
		r.shares.trim()
	}
	return p, nil
}

// first opens the part Run for batches of one size, or for all sizes if the graph does not accept that one. A session that
// failed leaves an empty profile.
func (p *pair) first(ctx context.Context, profile string) error {
	m, err := onnxio.Parse("run", p.parameterized.Run)
	if err != nil {
		return err
	}
	inputs := valueInfos(m.FeedInputs())
	p.inputs = inputs[:len(inputs)-len(p.parameterized.Names)]
	if p.key.batch > 0 {
		run, err := p.parameterized.RunOf(int64(p.key.batch))
		if err == nil {
			p.fixed, err = p.open(ctx, run)
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil && profile != "" {
			empty, _ := filepath.Glob(profile + "*")
			for _, path := range empty {
				os.Remove(path)
			}
		}
	}
	if p.fixed == nil {
		p.free, err = p.open(ctx, p.parameterized.Run)
	}
	if s := cmp.Or(p.fixed, p.free); s != nil {
		p.outputs = s.outputs
	}
	return err
}

// runTensors runs the part Run with tensors of the process or of the device, and the weights of a member.
func (p *pair) runTensors(ctx context.Context, in []Tensor, weights []*value, keep bool) ([]Tensor, error) {
	for {
		p.mu.RLock()
		if s := p.session(in); s != nil {
			defer p.mu.RUnlock()
			return s.runTensors(ctx, in, weights, keep)
		}
		p.mu.RUnlock()
		if err := p.openFree(ctx); err != nil {
			return nil, err
		}
	}
}

// session returns the session that takes such inputs, or nil if it is not open.
func (p *pair) session(in []Tensor) *Session {
	takes := func(s *Session) bool {
		for i, t := range in {
			if t.check(s.inputs[i]) != nil {
				return false
			}
		}
		return true
	}
	if p.fixed != nil && takes(p.fixed) {
		return p.fixed
	}
	return p.free
}

// openFree opens the session for all sizes, if it is not open.
func (p *pair) openFree(ctx context.Context) (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil {
		p.free, err = p.open(ctx, p.parameterized.Run)
	}
	return err
}

// divided closes the session for one size, because the memory of the device is too small for it. Its memory is free then.
func (p *pair) divided() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fixed == nil {
		return nil
	}
	s := p.fixed
	p.fixed = nil
	return s.Close()
}

func (p *pair) close() (err error) {
	for _, s := range []*Session{p.fixed, p.free, p.prepare, p.carry} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return err
}

// trim closes the oldest pairs that no member uses.
func (s *shares) trim() {
	idle := 0
	for i := len(s.pairs) - 1; i >= 0; i-- {
		if s.pairs[i].uses > 0 {
			continue
		}
		if idle++; idle > maxShared {
			s.pairs[i].close()
			s.pairs = slices.Delete(s.pairs, i, i+1)
		}
	}
}

// unshare ends a member's use.
func (r *Runtime) unshare(p *pair, alone bool) error {
	if alone {
		return p.close()
	}
	r.shares.Lock()
	defer r.shares.Unlock()
	p.uses--
	r.shares.trim()
	return nil
}
