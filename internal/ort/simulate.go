package ort

import (
	"errors"
	"sync/atomic"
	"unsafe"
)

// A Simulation is a GPU that tests use where there is none: CUDA's name, with the processor's kernels. It takes weights as
// inputs and adds up outcomes, as CUDA does. Its zero value computes the right numbers.
type Simulation struct {
	Unusable string // what its driver says when it is opened, or ""
	Room     int    // examples of a run that its memory is enough for: 0 is any number, -1 is none
	Last     int    // runs after which the GPU is gone; 0 is never
	// Weights, if not nil, changes a tensor of a member on its way to the GPU. Scores changes what a run gives: rows of
	// a size. They stand for kernels that are wrong.
	Weights func(shape []int64, of []float32) `json:"-"`
	Scores  func(rows int, of []float32)      `json:"-"`

	runs atomic.Int64
}

// simulation is the GPU of tests, or nil.
var simulation atomic.Pointer[Simulation]

// SimulateGPU is for tests: it makes [CUDA] such a GPU until end is called. No session may be open at either moment.
func SimulateGPU(s *Simulation) (end func()) {
	simulation.Store(s)
	was, k := kinds, cuda()
	k.memory, k.own, k.libraries = hostMemory, processor().own, processor().libraries
	k.ready, k.room, k.add, k.device = nil, nil, nil, false
	k.hold = func(r *Runtime, p Provider) error {
		if s.Unusable == "" {
			return nil
		}
		return r.unusableCUDA(p, errors.New(s.Unusable))
	}
	k.devices = func() string { return "a simulated GPU" }
	kinds = []*kind{processor(), openVINO(), k}
	return func() {
		simulation.Store(nil)
		kinds = was
	}
}

// of returns the simulated GPU if p is one.
func (s *Simulation) of(p Provider) *Simulation {
	if s == nil || !p.GPU() && !p.Parameterized {
		return nil
	}
	return s
}

// The words of ONNX Runtime.
const (
	noRoom = "Non-zero status code returned while running Conv node. Name:'conv' Status Message: CUDA failure 2: out of memory ; GPU=0"
	lost   = "CUDA failure 719: unspecified launch failure ; GPU=0 ; hostname=h ; expr=cudaStreamSynchronize(stream)"
)

// before fails as the GPU would at a run of so many examples, with ONNX Runtime's words.
func (s *Simulation) before(r *Runtime, examples int64) error {
	switch {
	case s == nil:
	case s.Room != 0 && examples > int64(s.Room):
		//lint:ignore ST1005 ONNX Runtime says it so
		return r.failure("ONNX Runtime", "", errors.New(noRoom))
	case s.Last > 0 && s.runs.Add(1) > int64(s.Last):
		return r.failure("ONNX Runtime", "", errors.New(lost))
	}
	return nil
}

// weights changes the weights of a member that are on the GPU.
func (s *Simulation) weights(all []*value) error {
	if s == nil || s.Weights == nil {
		return nil
	}
	return each32(all, s.Weights)
}

// scores changes what a run gives.
func (s *Simulation) scores(out []Tensor) error {
	if s == nil || s.Scores == nil {
		return nil
	}
	for _, t := range out {
		if t.F32 != nil && len(t.Shape) > 0 {
			s.Scores(int(t.Shape[0]), t.F32)
		} else if t.device != nil {
			if err := each32([]*value{t.device}, func(shape []int64, of []float32) { s.Scores(int(shape[0]), of) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// each32 calls f with the float32 tensors among values of the process's memory.
func each32(values []*value, f func(shape []int64, of []float32)) error {
	for _, v := range values {
		data, err := v.about()
		if err != nil {
			return err
		}
		n := int64(1)
		for _, d := range v.shape {
			n *= d
		}
		if v.dtype == "float32" && n > 0 && len(v.shape) > 0 {
			f(v.shape, unsafe.Slice((*float32)(data), n))
		}
	}
	return nil
}
