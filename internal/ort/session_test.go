package ort

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestRunTypes(t *testing.T) {
	shape := []int64{3}
	tests := []struct{ a, b, want Tensor }{ // where_*.onnx: {a0, b1, a2}
		{Tensor{F32: []float32{1, 2, 3}}, Tensor{F32: []float32{4, 5, 6}}, Tensor{F32: []float32{1, 5, 3}}},
		{Tensor{F64: []float64{1, 2, 3}}, Tensor{F64: []float64{4, 5, 6}}, Tensor{F64: []float64{1, 5, 3}}},
		{Tensor{F16: []uint16{1, 2, 3}}, Tensor{F16: []uint16{4, 5, 6}}, Tensor{F16: []uint16{1, 5, 3}}},
		{Tensor{U8: []uint8{1, 2, 255}}, Tensor{U8: []uint8{4, 5, 6}}, Tensor{U8: []uint8{1, 5, 255}}},
		{Tensor{I64: []int64{1, 2, -1 << 62}}, Tensor{I64: []int64{4, 5, 6}}, Tensor{I64: []int64{1, 5, -1 << 62}}},
	}
	for _, tt := range tests {
		dtype := tt.a.DType()
		s := load(t, "where_"+dtype+".onnx", Options{})
		if got := s.Inputs()[0]; got.Name != "a" || got.DType != dtype || !reflect.DeepEqual(got.Shape, []int64{-1}) {
			t.Errorf("%s: input %+v", dtype, got)
		}
		tt.a.Shape, tt.b.Shape = shape, shape
		tt.want.Name, tt.want.Shape = "y", shape

		byPlace := run(t, s, tt.a, tt.b)
		tt.a.Name, tt.b.Name = "a", "b"
		byName := run(t, s, tt.b, tt.a)
		for _, got := range [][]Tensor{byPlace, byName} {
			got[0].Shape = append([]int64(nil), got[0].Shape...)
			if !reflect.DeepEqual(got, []Tensor{tt.want}) {
				t.Errorf("%s: got %+v, want %+v", dtype, got, tt.want)
			}
		}
	}
}

func TestRunFloat16(t *testing.T) {
	half := []uint16{0x3c00, 0, 0, 0x3c00, 0x3c00, 0x3c00} // 1 0 0, 1 1 1
	want := []uint16{0x4980, 0x4d80, 0x4cc0, 0x5000}       // 11 22, 19 32
	for _, name := range []string{"float16.onnx", "float16_dim.onnx"} {
		got := run(t, load(t, name, Options{}), Tensor{Shape: []int64{2, 3}, F16: half})[0]
		if !reflect.DeepEqual(got.F16, want) || fmt.Sprint(got.Shape) != "[2 2]" {
			t.Errorf("%s: got %v %x, want %x", name, got.Shape, got.F16, want)
		}
	}
}

// A model that declares a huge output of float16, whose memory Go takes before the run, is an error.
func TestRunHugeFloat16(t *testing.T) {
	s := load(t, "float16.onnx", Options{})
	s.outputs[0].Shape[1] = 1 << 38
	_, err := s.Run(t.Context(), []Tensor{{Shape: []int64{2, 3}, F16: make([]uint16, 6)}})
	if err == nil || !strings.Contains(err.Error(), `output "y": float16: shape [2 274877906944]: too many elements, want at most `) {
		t.Errorf("error %v", err)
	}
}

func TestRunScalarsAndSelectedOutputs(t *testing.T) {
	s := load(t, "scalar.onnx", Options{Outputs: []string{"free", "sum", "shape"}})
	out := run(t, s,
		Tensor{Shape: []int64{3, 2}, F32: []float32{1, 2, 3, 4, 5, 6}},
		Tensor{Name: "scale", F32: []float32{10}})
	if len(out) != 3 || out[0].Name != "free" || len(out[0].F32) != 6 || out[0].F32[5] != 60 {
		t.Errorf("free: %+v", out[0])
	}
	if len(out[1].Shape) != 0 || len(out[1].F32) != 1 || out[1].F32[0] != 210 {
		t.Errorf("sum: %+v", out[1])
	}
	if !reflect.DeepEqual(out[2].I64, []int64{3, 2}) {
		t.Errorf("shape: %+v", out[2])
	}
}

// ONNX Runtime's batch variance is the population variance.
func TestRunTrainingBatchNorm(t *testing.T) {
	s := load(t, "batchnorm.onnx", Options{})
	out := run(t, s, Tensor{Shape: []int64{2, 2}, F32: []float32{1, 10, 3, 30}})
	if !reflect.DeepEqual(out[1].F32, []float32{2, 20}) || !reflect.DeepEqual(out[2].F32, []float32{1, 100}) {
		t.Errorf("mean %v, variance %v, want [2 20], [1 100]", out[1].F32, out[2].F32)
	}
}

func TestInitializersAreNotInputs(t *testing.T) {
	s := load(t, "ir3.onnx", Options{})
	if got := quoted(s.Inputs()); got != `"x"` {
		t.Errorf("inputs %s", got)
	}
	run(t, s, Tensor{Shape: []int64{1, 3}, F32: []float32{1, 1, 1}})
}

// External data is read where the model says it was written, and must not be
// found by accident.
func TestNoExternalData(t *testing.T) {
	model := read(t, "external.onnx")
	t.Chdir("testdata") // where the data lies
	if _, err := rt.NewSession(model, Options{}); err == nil || !strings.Contains(err.Error(), "external.bin") {
		t.Errorf("without a folder: %v", err)
	}
}

func TestNewSessionErrors(t *testing.T) {
	linear := read(t, "linear.onnx")
	tests := []struct {
		name  string
		model []byte
		opts  Options
		want  string
	}{
		{"empty", nil, Options{}, "model"},
		{"text", []byte("hello, world"), Options{}, "model"},
		{"truncated", linear[:len(linear)/2], Options{}, "model"},
		{"unknown operator", read(t, "unknown_op.onnx"), Options{}, "No Op registered for Blorp"},
		{"no input", read(t, "no_input.onnx"), Options{}, "no inputs"},
		{"no output", linear, Options{Outputs: []string{}}, "no outputs"},
		{"wrong output", linear, Options{Outputs: []string{"z"}}, `no output "z", it has "y"`},
		{"int32 output", read(t, "scalar.onnx"), Options{}, `output "int": type "int32" is not supported`},
		{"threads", linear, Options{Threads: -1}, "-1 threads"},
	}
	for _, tt := range tests {
		s, err := rt.NewSession(tt.model, tt.opts)
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", tt.name)
			continue
		}
		if msg := err.Error(); !strings.Contains(msg, tt.want) || strings.ContainsAny(msg, "\n\r") {
			t.Errorf("%s: %q, want %q", tt.name, msg, tt.want)
		}
	}
}

func TestRunErrors(t *testing.T) {
	ok := []float32{1, 2, 3}
	linear := load(t, "linear.onnx", Options{})
	where := load(t, "where_float32.onnx", Options{})
	tests := []struct {
		name   string
		s      *Session
		inputs []Tensor
		want   string
	}{
		{"none", linear, nil, `0 inputs, want 1: "x"`},
		{"wrong name", linear, []Tensor{{Name: "z", Shape: []int64{1, 3}, F32: ok}}, `no input "z", it has "x"`},
		{"twice", where, []Tensor{{Name: "a", Shape: []int64{3}, F32: ok}, {Name: "a", Shape: []int64{3}, F32: ok}}, `input "a": given twice`},
		{"rank", linear, []Tensor{{Shape: []int64{3}, F32: ok}}, `input "x": shape [3], want [batch 3]`},
		{"dimension", linear, []Tensor{{Shape: []int64{3, 1}, F32: ok}}, `input "x": shape [3 1], want [batch 3]`},
		{"elements", linear, []Tensor{{Shape: []int64{2, 3}, F32: ok}}, `input "x": 3 elements for shape [2 3], want 6`},
		{"zero", linear, []Tensor{{Shape: []int64{0, 3}, F32: []float32{}}}, `shape [0 3]: a batch of 0`},
		{"negative", linear, []Tensor{{Shape: []int64{-1, -3}, F32: ok}}, `shape [-1 -3]: negative dimension`},
		{"overflow", linear, []Tensor{{Shape: []int64{1 << 40, 1 << 40}, F32: ok}}, `too many elements`},
		{"type", linear, []Tensor{{Shape: []int64{1, 3}, F64: []float64{1, 2, 3}}}, `input "x": type float64, want float32`},
		{"no data", linear, []Tensor{{Shape: []int64{1, 3}}}, `input "x": not exactly one data field`},
		{"two data", linear, []Tensor{{Shape: []int64{1, 3}, F32: ok, U8: []uint8{1, 2, 3}}}, `input "x": not exactly one data field`},
		// Passes our checks; ONNX Runtime finds that the mask has 3 elements.
		{"inside", where, []Tensor{{Shape: []int64{2}, F32: ok[:2]}, {Shape: []int64{2}, F32: ok[:2]}}, "ONNX Runtime: "},
	}
	for _, tt := range tests {
		_, err := tt.s.Run(context.Background(), tt.inputs)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestSequenceOutput(t *testing.T) {
	s, err := rt.NewSession(read(t, "sequence.onnx"), Options{})
	if err == nil {
		defer s.Close()
		_, err = s.Run(context.Background(), []Tensor{{Shape: []int64{1}, F32: []float32{1}}})
	}
	if err == nil || !strings.Contains(err.Error(), `output "y"`) {
		t.Errorf("got %v", err)
	}
}

// A model may lie about its outputs; the memory we allocate for them must not overflow.
func TestWronglyDeclaredOutput(t *testing.T) {
	for _, lie := range []ValueInfo{
		{Name: "y", DType: "float16", Shape: []int64{1, 2}, dims: []string{"", ""}},  // is float32
		{Name: "y", DType: "float32", Shape: []int64{}},                              // is no scalar
		{Name: "y", DType: "float16", Shape: []int64{9, -1}, dims: []string{"", ""}}, // unknown second dimension
	} {
		s := load(t, "linear.onnx", Options{})
		s.outputs = []ValueInfo{lie}
		if out, err := s.Run(context.Background(), []Tensor{{Shape: []int64{1, 3}, F32: []float32{1, 2, 3}}}); err == nil {
			t.Errorf("%+v: no error, %+v", lie, out)
		}
	}
	s := load(t, "float16.onnx", Options{})
	s.outputs[0].Shape = []int64{1, 2}
	if out, err := s.Run(context.Background(), []Tensor{{Shape: []int64{2, 3}, F16: make([]uint16, 6)}}); err == nil {
		t.Errorf("wrong batch: no error, %+v", out)
	}
}

// Temporary inputs that nothing in Go refers to any more, while the collector
// runs all the time: without care, ONNX Runtime reads memory that is in use for
// something else. Every result must be exact.
func TestInputsSurviveGarbageCollection(t *testing.T) {
	s := load(t, "linear.onnx", Options{})
	h := load(t, "float16.onnx", Options{})
	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	const rows, runs = 200_000, 25
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for i := range runs {
				v := float32(w*runs + i)
				out, err := s.Run(context.Background(), []Tensor{{Shape: []int64{rows, 3}, F32: filled(3*rows, v)}})
				filled(3*rows, float32(-1)) // takes the place of memory that was freed too early
				if err != nil {
					t.Error(err)
					return
				}
				for r := range rows {
					if out[0].F32[2*r] != 9*v+10 || out[0].F32[2*r+1] != 12*v+20 {
						t.Errorf("run %d, row %d: %v, input %v", i, r, out[0].F32[2*r:2*r+2], v)
						return
					}
				}
				half, err := h.Run(context.Background(), []Tensor{{Shape: []int64{rows, 3}, F16: filled(3*rows, uint16(0x3c00))}})
				if err != nil || half[0].F16[2*rows-2] != 0x4cc0 || half[0].F16[2*rows-1] != 0x5000 {
					t.Errorf("float16 run %d: %v", i, err)
					return
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	collector.Wait()
}

func filled[T any](n int, v T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = v
	}
	return s
}

func TestCancel(t *testing.T) {
	s := load(t, "endless.onnx", Options{})
	input := []Tensor{{Shape: []int64{64, 64}, F32: make([]float32, 64*64)}}

	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := s.Run(ctx, input); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}

	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Run(ctx, input); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if _, err := s.Run(ctx, input); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended context: got %v", err)
	}
}

func TestClose(t *testing.T) {
	s := load(t, "linear.onnx", Options{})
	input := []Tensor{{Shape: []int64{1, 3}, F32: []float32{1, 2, 3}}}
	var g sync.WaitGroup
	for range 4 {
		g.Go(func() {
			for {
				if _, err := s.Run(context.Background(), input); err == ErrClosed {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	g.Wait()
}

// bomb.onnx asks for 768 MiB of zeros; folding them at load takes seconds.
func TestConstantFoldingIsCapped(t *testing.T) {
	before := peakMemory(t)
	load(t, "bomb.onnx", Options{})
	if grown := peakMemory(t) - before; grown > 256<<20 {
		t.Errorf("loading took %d MiB", grown>>20)
	}
}
