package ort

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	binding "github.com/yalue/onnxruntime_go"
)

// Options configure a Session. The zero value uses all cores and computes all outputs.
type Options struct {
	// Threads is the number of threads that share one run; 0 means one per core. For concurrent runs 1 is best.
	Threads int
	// AllowSpinning lets idle threads wait actively. This speeds up a session that runs alone and slows down all
	// other work.
	AllowSpinning bool
	// Outputs names the outputs to compute, in this order. Nil means all, in the model's order.
	Outputs  []string
	Provider Provider
	// Callers is the number of concurrent runs, each with its own threads; 0 means 1. ONNX Runtime's own kernels
	// ignore it.
	Callers int
	// Batch is the first dimension of the inputs of most runs; 0 means any. A provider that [Provider.Feeds] prepares for it.
	Batch int

	// Plain leaves out ONNX Runtime's optimisations of the graph. Results then differ by rounding alone.
	Plain bool

	profile      string // prefix of the profile's path, or "" for no profile
	onThisThread bool   // load on the calling thread
	bound        bool   // runs bind values of any type: see [onnxio.Parameterized]
}

// ErrClosed is returned by Run after Close.
var ErrClosed = errors.New("session is closed")

// A Session is a model that is ready to run.
type Session struct {
	runtime *Runtime
	inputs  []ValueInfo
	outputs []ValueInfo

	provider Provider
	large    bool

	mu            sync.RWMutex // held for reading by runs, for writing by Close
	session       *binding.DynamicAdvancedSession
	parameterized *member // instead of session, for a member whose weights are inputs
}

// NewSession loads a serialized model without external data. The bytes may be reused afterwards. An error gives ONNX
// Runtime's reason in one line.
func (r *Runtime) NewSession(model []byte, opts Options) (*Session, error) {
	m, err := onnxio.Parse("model", model)
	if err != nil {
		return nil, err
	}
	return r.load(context.Background(), model, m.Signature(), "", int64(len(model)), opts)
}

// load loads a model of the given total size. Its external data, if any, is in the folder dir. If ctx ends or the
// memory limit is exceeded, load returns at once. ONNX Runtime cannot stop loading, so it continues in the
// background, and the session is then destroyed.
func (r *Runtime) load(ctx context.Context, model []byte, sig onnxio.Signature, dir string, size int64, opts Options) (*Session, error) {
	if opts.Threads < 0 {
		return nil, fmt.Errorf("%d threads, want 0 or more", opts.Threads)
	}
	if len(model) > math.MaxInt32 {
		return nil, fmt.Errorf("model of %d bytes: protocol buffers end at 2 GiB, keep the weights in external data", len(model))
	}
	// The binding can ask ONNX Runtime for the inputs and outputs, but only by loading the model a second time,
	// without the session's options.
	inputs := valueInfos(sig.Inputs)
	outputs, err := selectOutputs(valueInfos(sig.Outputs), opts.Outputs)
	if err != nil {
		return nil, err
	}
	if !opts.bound {
		err = checkSignature(inputs, outputs)
	}
	if err != nil {
		return nil, err
	}

	open := func() (*Session, error) {
		session, err := r.create(model, names(inputs), names(outputs), dir, size, sig.Nodes, opts)
		if err != nil {
			return nil, err
		}
		return &Session{runtime: r, inputs: inputs, outputs: outputs, provider: opts.Provider, session: session, large: large(size)}, nil
	}
	if opts.onThisThread {
		return open()
	}
	if err := r.room(int64(len(model))); err != nil { // data files are mapped and need no room
		return nil, err
	}
	outer := ctx
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	defer r.watch(abandon)()
	type result struct {
		*Session
		err error
	}
	loaded := make(chan result)
	go weights.Guarded(func() error {
		s, err := open()
		select {
		case loaded <- result{s, err}:
		case <-ctx.Done():
			if err == nil {
				s.Close()
			}
		}
		return nil
	})()
	select {
	case l := <-loaded:
		return l.Session, l.err
	case <-ctx.Done():
		return nil, ended(outer, ctx)
	}
}

// create makes a session for load.
func (r *Runtime) create(model []byte, inputs, outputs []string, dir string, size, nodes int64,
	opts Options) (*binding.DynamicAdvancedSession, error) {
	so, err := sessionOptions(dir, foldable(size, nodes), opts)
	if err != nil {
		return nil, err
	}
	defer so.Destroy()
	leave, err := opts.Provider.enter(context.Background())
	if err != nil {
		return nil, err
	}
	defer leave()
	if large(size) {
		defer reuseFreedMemory()()
	}
	if add := opts.Provider.kind().add; add != nil {
		err = add(r, so, opts)
	}
	if err != nil {
		return nil, err
	}
	session, err := binding.NewDynamicAdvancedSessionWithONNXData(model, inputs, outputs, so)
	if err != nil {
		return nil, r.failure("ONNX Runtime cannot load the model", "Error creating C session: ", err)
	}
	return session, nil
}

// large reports whether a model of a size in bytes has blocks that glibc does not always keep.
func large(size int64) bool { return size > keptAlways }

// foldable returns the largest output of a node, in bytes, that ONNX Runtime may compute while it loads a model. It
// depends on the model's size and number of nodes. Folding may enlarge constants a little (transposed or widened
// copies of weights), but 150 bytes must never become gigabytes. The result must not depend on the available memory,
// because folding may change the last bits of results.
func foldable(size, nodes int64) int64 {
	const slack = 64 << 20
	return slack/max(1, nodes) + 4*size + 1
}

// sessionOptions translates opts. It bounds constant folding to outputs of foldable bytes.
func sessionOptions(dir string, foldable int64, opts Options) (*binding.SessionOptions, error) {
	so, err := binding.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		// Without a folder, ONNX Runtime would look in the working directory for the external data of a model in
		// memory.
		dir = os.DevNull
	}
	entries := map[string]string{
		"session.intra_op.allow_spinning":                        "0",
		"session.model_external_initializers_file_folder_path":   dir,
		"optimization.constant_folding_max_output_size_in_bytes": strconv.FormatInt(foldable, 10),
		// Runs use the pool that all sessions share. Weights do not, because they would leave holes in it.
		"session.use_env_allocators":                    "1",
		"session.use_device_allocator_for_initializers": "1",
		"optimization.disable_specified_optimizers":     strings.Join(opts.Provider.disabled(), ";"),
	}
	if opts.AllowSpinning {
		entries["session.intra_op.allow_spinning"] = "1"
	}
	for k, v := range entries {
		err = errors.Join(err, so.AddSessionConfigEntry(k, v))
	}
	// With memory patterns a run asks for all its memory in one piece, which the pool rarely has.
	err = errors.Join(err, so.SetMemPattern(false))
	if opts.profile != "" {
		err = errors.Join(err, so.EnableProfiling(opts.profile))
	}
	if opts.Threads > 0 {
		err = errors.Join(err, so.SetIntraOpNumThreads(opts.Threads))
	}
	if opts.Plain {
		err = errors.Join(err, so.SetGraphOptimizationLevel(binding.GraphOptimizationLevelDisableAll))
	}
	if err != nil {
		so.Destroy()
		return nil, err
	}
	return so, nil
}

// Inputs returns the inputs of the model, in the model's order.
func (s *Session) Inputs() []ValueInfo { return slices.Clone(s.inputs) }

// Run computes the outputs for one set of inputs, in the order of [Options]. It may be called from many goroutines.
// If ctx ends, Run returns ctx.Err() after the current node.
func (s *Session) Run(ctx context.Context, inputs []Tensor) ([]Tensor, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.session == nil && s.parameterized == nil {
		return nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inputs, err := s.arrange(inputs)
	if err != nil {
		return nil, err
	}
	if s.parameterized != nil {
		return s.runParameterized(ctx, inputs, false)
	}

	// Destroying the values after the run also keeps their memory alive until then.
	var pins runtime.Pinner
	defer pins.Unpin()
	in := make([]binding.Value, len(s.inputs))
	out := make([]binding.Value, len(s.outputs))
	defer func() { destroy(in); destroy(out) }()
	for i, t := range inputs {
		if in[i], err = t.value(&pins); err != nil {
			return nil, fmt.Errorf("input %q: %s", s.inputs[i].Name, shorten(err.Error()))
		}
	}
	results := make([]Tensor, len(s.outputs))
	for i := range out {
		if results[i], err = s.allocate(i, inputs); err != nil {
			return nil, err
		}
		if results[i].Shape == nil {
			continue // ONNX Runtime allocates it
		}
		if out[i], err = results[i].value(&pins); err != nil {
			return nil, fmt.Errorf("output %q: %s", s.outputs[i].Name, shorten(err.Error()))
		}
	}

	err = s.guarded(ctx, func(opts *binding.RunOptions) error { return s.session.RunWithOptions(in, out, opts) })
	if err != nil {
		return nil, err
	}
	for i, v := range out {
		if results[i].F16 == nil {
			if results[i], err = take(v); err != nil {
				return nil, fmt.Errorf("output %q: %w", s.outputs[i].Name, err)
			}
		}
		results[i].Name = s.outputs[i].Name
	}
	return results, nil
}

// guarded calls run, and stops it if ctx ends.
func (s *Session) guarded(ctx context.Context, run func(*binding.RunOptions) error) error {
	opts, err := binding.NewRunOptions()
	if err != nil {
		return err
	}
	defer opts.Destroy()
	outer := ctx
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	terminated := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		opts.Terminate()
		close(terminated)
	})
	unwatch := s.runtime.watch(abandon)
	leave, err := s.provider.enter(ctx)
	if err == nil {
		err = run(opts)
		leave()
	}
	unwatch()
	if !stop() {
		<-terminated // opts must outlive Terminate
	}
	if ctx.Err() != nil {
		return ended(outer, ctx)
	}
	if err != nil {
		return s.runtime.failure("ONNX Runtime", "Error running network: ", err)
	}
	return nil
}

// ended returns the error of inner, which is derived from outer: outer's error if outer ended, else inner's cause.
func ended(outer, inner context.Context) error {
	if err := outer.Err(); err != nil {
		return err
	}
	return context.Cause(inner)
}

// arrange sorts the inputs into the model's order and checks them.
func (s *Session) arrange(inputs []Tensor) ([]Tensor, error) {
	if len(inputs) != len(s.inputs) {
		return nil, fmt.Errorf("%d inputs, want %d: %s", len(inputs), len(s.inputs), quoted(s.inputs))
	}
	arranged := make([]Tensor, len(inputs))
	seen := make([]bool, len(inputs))
	for i, t := range inputs {
		if t.Name != "" {
			i = slices.IndexFunc(s.inputs, func(v ValueInfo) bool { return v.Name == t.Name })
			if i < 0 {
				return nil, fmt.Errorf("the model has no input %q, it has %s", t.Name, quoted(s.inputs))
			}
		}
		if seen[i] {
			return nil, fmt.Errorf("input %q: given twice", s.inputs[i].Name)
		}
		if err := t.check(s.inputs[i]); err != nil {
			return nil, fmt.Errorf("input %q: %w", s.inputs[i].Name, err)
		}
		arranged[i], seen[i] = t, true
	}
	return arranged, nil
}

// allocate allocates output i if the binding cannot, which is the case for float16 and scalars. Otherwise it returns
// a zero Tensor.
func (s *Session) allocate(i int, inputs []Tensor) (Tensor, error) {
	want := s.outputs[i]
	switch {
	case want.DType == "float16":
		shape, n, err := s.resolve(want, inputs)
		if err != nil {
			return Tensor{}, fmt.Errorf("output %q: %w", want.Name, err)
		}
		return Tensor{Shape: shape, F16: make([]uint16, n)}, nil
	case !want.scalar():
		return Tensor{}, nil
	}
	t := Tensor{Shape: []int64{}}
	switch want.DType {
	case "float32":
		t.F32 = make([]float32, 1)
	case "float64":
		t.F64 = make([]float64, 1)
	case "uint8":
		t.U8 = make([]uint8, 1)
	case "int64":
		t.I64 = make([]int64, 1)
	default:
		return Tensor{}, nil
	}
	return t, nil
}

// maxHalves is the maximum number of float16 elements of an output. The output is allocated before the run, with the
// shape that the model declares. Without a limit, a tiny model could request more memory than Go survives.
const maxHalves = 1 << 29

// resolve replaces the dynamic dimensions of an output with the inputs' dimensions of the same name, or with their sum,
// such as "past + sequence" of a cache. Exporters may use another name for the batch dimension of outputs, so an unknown
// first dimension is taken as the batch. If that is wrong, ONNX Runtime refuses the run.
func (s *Session) resolve(want ValueInfo, inputs []Tensor) (shape []int64, n int64, err error) {
	known := map[string]int64{}
	for i, v := range s.inputs {
		for j, name := range v.dims {
			if name != "" {
				known[name] = inputs[i].Shape[j]
			}
		}
	}
	shape = slices.Clone(want.Shape)
	for i, d := range shape {
		if d >= 0 {
			continue
		}
		size, ok := known[want.dims[i]]
		if terms := strings.Split(want.dims[i], " + "); !ok && len(terms) == 2 {
			a, first := known[terms[0]]
			b, second := known[terms[1]]
			size, ok = a+b, first && second
		}
		if ok {
			shape[i] = size
		} else if i == 0 && len(inputs[0].Shape) > 0 {
			shape[i] = inputs[0].Shape[0]
		} else {
			return nil, 0, fmt.Errorf("float16 with shape %s: dimension %d is not known before the run", want.formatShape(), i)
		}
	}
	const half, size = 2, 2 // of the limit; bytes of an element
	most := int64(maxHalves)
	if limit := s.runtime.limit.Load(); limit > 0 {
		most = min(most, limit/half/size)
	}
	if n, err = weights.Within(shape, most); err != nil {
		err = fmt.Errorf("float16: %w", err)
	}
	return shape, n, err
}

// Close releases the session's memory after the current runs have ended. It may be called more than once.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parameterized != nil {
		m := s.parameterized
		s.parameterized = nil
		return m.close(s.runtime)
	}
	if s.session == nil {
		return nil
	}
	leave, _ := s.provider.enter(context.Background()) // this context does not end
	err := s.session.Destroy()
	leave()
	s.session = nil
	if s.large {
		giveBackMemory()
	}
	return err
}

// destroy releases values. After an error some of them are nil or hold a nil pointer.
func destroy(values []binding.Value) {
	for _, v := range values {
		if v != nil && !reflect.ValueOf(v).IsNil() {
			v.Destroy()
		}
	}
}
