package ort

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// Feeds reports whether one session serves all members of a network: the weights are inputs, which stay in the memory
// of the device.
func (p Provider) Feeds() bool { return p.kind().memory != "" || p.Parameterized }

// AddsUp reports whether the device computes in float64, so that it can add up what members predict.
func (p Provider) AddsUp() bool { return p.kind().doubles || p.Parameterized }

// deviceMemory returns ONNX Runtime's name of the memory of the device.
func (p Provider) deviceMemory() string {
	if name := p.kind().memory; name != "" {
		return name
	}
	return hostMemory
}

// feed returns a session of a member whose weights are inputs.
func (r *Runtime) feed(ctx context.Context, f onnxio.Filled, opts Options) (*Session, error) {
	parameterized, err := f.Parameterized(opts.Provider.Precision == F16)
	if err != nil {
		return nil, err
	}
	both, err := r.share(ctx, f, parameterized, opts)
	if err != nil {
		return nil, err
	}
	given, err := both.ready(ctx, f)
	if err != nil {
		r.unshare(both, opts.profile != "")
		return nil, err
	}
	s := &Session{runtime: r, inputs: both.inputs, outputs: both.outputs, provider: opts.Provider}
	r.copied.members.Add(1)
	s.parameterized = &member{of: both, weights: given, alone: opts.profile != ""}
	return s, nil
}

// ready copies the weights of a member to the device, and computes from them the inputs of its runs.
func (p *pair) ready(ctx context.Context, f onnxio.Filled) ([]*value, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	in := make([]*value, len(p.parameterized.Tensors))
	defer func() { freeAll(in) }()
	for i, t := range p.parameterized.Tensors {
		var b bytes.Buffer
		b.Grow(int(t.Len() * t.DType.Size()))
		from := f.Parameters
		if t.Role.Vector() == weights.Statistic {
			from = f.Statistics
		}
		err := weights.WriteTensor(&b, t, from)
		if err == nil {
			in[i], err = p.prepare.runtime.wrap(t.Shape, unsafe.Pointer(unsafe.SliceData(b.Bytes())), b.Len(),
				int32(p.parameterized.Inputs[i].ElemType), &pins)
		}
		if err != nil {
			return nil, err
		}
	}
	given, err := p.prepare.runBound(ctx, in, nil, true)
	if err == nil {
		err = simulation.Load().of(p.key.provider).weights(given)
	}
	return given, err
}

// member is the part of a session that is one member's own.
type member struct {
	of      *pair
	weights []*value
	alone   bool // the pair is this member's
}

// close frees the weights.
func (m *member) close(r *Runtime) error {
	freeAll(m.weights)
	return r.unshare(m.of, m.alone)
}

// runBound runs a session with values for its inputs, in order, and more for those behind them.
func (s *Session) runBound(ctx context.Context, in, more []*value, keep bool) (out []*value, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.session == nil {
		return nil, ErrClosed
	}
	err = s.guarded(ctx, func(opts *binding.RunOptions) (err error) {
		out, err = s.runtime.bound(s.session, opts, names(s.inputs), append(in[:len(in):len(in)], more...), names(s.outputs),
			s.provider.deviceMemory(), s.provider.Device, keep)
		return err
	})
	for _, v := range out {
		if keep {
			v.of = s.provider
		}
	}
	return out, err
}

// runParameterized is [Session.Run] for a member whose weights are on the device. in are in the model's order.
func (s *Session) runParameterized(ctx context.Context, in []Tensor, keep bool) ([]Tensor, error) {
	sim := simulation.Load().of(s.provider)
	err := sim.before(s.runtime, in[0].Shape[0])
	var out []Tensor
	if err == nil {
		out, err = s.parameterized.of.runTensors(ctx, in, s.parameterized.weights, keep)
	}
	if _, full := errors.AsType[*GPUMemoryError](err); full {
		return nil, errors.Join(err, s.parameterized.of.divided())
	}
	if err == nil {
		err = sim.scores(out)
	}
	return out, err
}

// runTensors runs a session with tensors of the process or of the device, and with more values behind them. The outputs
// stay on the device if keep is set.
func (s *Session) runTensors(ctx context.Context, in []Tensor, more []*value, keep bool) ([]Tensor, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	values, own := make([]*value, len(in)), []*value(nil)
	defer func() { freeAll(own) }()
	for i, t := range in {
		if t.device != nil {
			values[i] = t.device
			continue
		}
		v, err := s.runtime.host(t, &pins)
		if err != nil {
			return nil, fmt.Errorf("input %q: %s", s.inputs[i].Name, shorten(err.Error()))
		}
		values[i], own = v, append(own, v)
	}
	out, err := s.runBound(ctx, values, more, keep)
	if err != nil {
		return nil, err
	}
	results := make([]Tensor, len(out))
	for i, v := range out {
		if keep {
			_, err = v.about()
			results[i] = Tensor{Shape: v.shape, device: v}
		} else {
			results[i], err = v.tensor()
			s.runtime.copied.back.Add(results[i].size())
		}
		if err != nil {
			freeAll(out)
			return nil, fmt.Errorf("output %q: %w", s.outputs[i].Name, err)
		}
		results[i].Name = s.outputs[i].Name
	}
	if !keep {
		freeAll(out)
	}
	return results, nil
}

// OnDevice reports whether the tensor is on a device: see [Session.Carry].
func (t Tensor) OnDevice() bool { return t.device != nil }

// OnDevice reports whether the session can keep tensors on a device: see [Session.Carry].
func (s *Session) OnDevice() bool { return s.parameterized != nil }

// Carry copies the inputs of runs to the device, where all members of the network can use them. [Free] ends that. They
// stay as they are if the session has no device.
func (s *Session) Carry(ctx context.Context, inputs []Tensor) ([]Tensor, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.parameterized == nil || len(inputs) < len(s.inputs) { // states come later
		return inputs, nil
	}
	arranged, err := s.arrange(inputs)
	if err != nil {
		return nil, err
	}
	copied, err := s.parameterized.of.carry.runTensors(ctx, arranged, nil, true)
	for i := range copied {
		copied[i].Name = s.inputs[i].Name
	}
	return copied, err
}

// RunKept is [Session.Run] for a session on a device. The outputs stay there until [Free].
func (s *Session) RunKept(ctx context.Context, inputs []Tensor) ([]Tensor, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.parameterized == nil {
		return nil, ErrClosed
	}
	inputs, err := s.arrange(inputs)
	if err != nil {
		return nil, err
	}
	return s.runParameterized(ctx, inputs, true)
}

// Free frees the tensors that are on a device.
func Free(tensors []Tensor) {
	for _, t := range tensors {
		t.device.free()
	}
}

// Traffic says what sessions on a device cost so far, or returns "" if there was none.
func (r *Runtime) Traffic() string {
	if r.copied.sessions.Load() == 0 {
		return ""
	}
	return fmt.Sprintf("%d sessions on the device served %d members. %s went there, and %s came back",
		r.copied.sessions.Load(), r.copied.members.Load(), megabytes(r.copied.to.Load()), megabytes(r.copied.back.Load()))
}

// copied counts networks whose sessions were opened, the members that they served, and bytes to the device and back.
type copied struct{ sessions, members, to, back atomic.Int64 }

// NewBound loads a model whose runs take and leave tensors on the provider's device: see [Session.RunBound].
func (r *Runtime) NewBound(ctx context.Context, model []byte, p Provider) (*Session, error) {
	m, err := onnxio.Parse("model", model)
	if err != nil {
		return nil, err
	}
	return r.load(ctx, model, m.Signature(), "", int64(len(model)), Options{Threads: 1, Provider: p, bound: true})
}

// RunBound is [Session.Run] for a session of [Runtime.NewBound]. The outputs stay on the device until [Free] if keep is set.
func (s *Session) RunBound(ctx context.Context, inputs []Tensor, keep bool) ([]Tensor, error) {
	inputs, err := s.arrange(inputs)
	if err != nil {
		return nil, err
	}
	return s.runTensors(ctx, inputs, nil, keep)
}
