//go:build webgpu

package ort

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/swagwrap/swagwrap/onnxio"
)

func init() { tested = Provider{Name: WebGPU} }

// convolution returns a model of one convolution: fields of ONNX messages, by number. The weights differ from each other.
func convolution(shape []int64, ints map[string][]int64) []byte {
	message := func(b []byte, field protowire.Number, with []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), with)
	}
	number := func(b []byte, field protowire.Number, v int64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
	}
	node := message(message(message(nil, 1, []byte("x")), 1, []byte("w")), 2, []byte("y"))
	node = message(node, 4, []byte("Conv"))
	for name, values := range ints {
		attribute, kind := message(nil, 1, []byte(name)), int64(7) // INTS
		for _, v := range values {
			if name == "group" {
				attribute, kind = number(attribute, 3, v), 2 // INT
			} else {
				attribute = number(attribute, 8, v)
			}
		}
		node = message(node, 5, number(attribute, 20, kind))
	}
	const float = 1
	weight, count := number(nil, 2, float), int64(1)
	for _, d := range shape {
		weight, count = number(weight, 1, d), count*d
	}
	var raw []byte
	for i := range count {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(math.Sin(float64(i)))))
	}
	weight = message(message(weight, 8, []byte("w")), 9, raw)
	value := func(name string) []byte {
		return message(message(nil, 1, []byte(name)), 2, message(nil, 1, number(nil, 1, float)))
	}
	graph := message(message(nil, 1, node), 2, []byte("g"))
	graph = message(message(message(graph, 5, weight), 11, value("x")), 12, value("y"))
	return message(message(number(nil, 1, 8), 7, graph), 8, number(nil, 2, 17))
}

// WebGPU computes exactly those convolutions wrong that [onnxio.MisreadByWebGPU] finds. If this fails with another ONNX Runtime,
// the rule is to be changed, or may go.
func TestGPUThrees(t *testing.T) {
	type options = map[string][]int64
	type network struct {
		weight []int64
		ints   options
	}
	var networks []network
	for _, in := range []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 18, 24, 30} {
		networks = append(networks, network{[]int64{8, in, 3, 3}, nil})
	}
	for _, in := range []int64{3, 6, 18} {
		for _, out := range []int64{4, 6, 7, 12, 16} {
			networks = append(networks, network{[]int64{out, in, 3, 3}, nil})
		}
		for _, size := range []int64{1, 2, 4, 5} {
			networks = append(networks, network{[]int64{8, in, size, size}, nil}, network{[]int64{8, in, size, size}, options{"strides": {2, 2}}})
		}
		networks = append(networks, network{[]int64{8, in, 1, 1}, options{"pads": {1, 1, 1, 1}}}, network{[]int64{8, in, 3}, nil}, network{[]int64{8, in, 2, 2, 2}, nil}, network{[]int64{12, in / 3, 3, 3}, options{"group": {3}}})
	}
	wrong := 0
	for _, n := range networks {
		model := convolution(n.weight, n.ints)
		m, err := onnxio.Parse("conv", model)
		if err != nil {
			t.Fatal(err)
		}
		x := Tensor{Shape: []int64{2, n.weight[1]}}
		if n.ints["group"] != nil {
			x.Shape[1] *= n.ints["group"][0]
		}
		count := x.Shape[0] * x.Shape[1]
		for range n.weight[2:] {
			x.Shape, count = append(x.Shape, 9), 9*count
		}
		for i := range count {
			x.F32 = append(x.F32, float32(math.Cos(float64(i))))
		}
		var of [2][]float32
		for i, p := range []Provider{{}, tested} {
			s, err := rt.NewSession(model, Options{Threads: 1, Provider: p})
			if err != nil {
				t.Fatalf("%v: %v", n, err)
			}
			of[i] = run(t, s, x)[0].F32
			s.Close()
		}
		largest, separate := 0.0, 0.0
		for i, v := range of[0] {
			largest, separate = math.Max(largest, math.Abs(float64(v))), math.Max(separate, math.Abs(float64(v-of[1][i])))
		}
		found := onnxio.MisreadByWebGPU(m) != ""
		if is := separate > 0.01*largest; is != found {
			t.Errorf("weight %v, %v: %.2g of %.2g, and MisreadByWebGPU says %v", n.weight, n.ints, separate, largest, found)
		} else if is {
			wrong++
		}
	}
	t.Logf("%d of %d convolutions are wrong", wrong, len(networks))
	if wrong == 0 {
		t.Error("no convolution is wrong")
	}
}

// Runs at the same time, whose inputs are copied to the device and freed there, give the same scores again and again.
func TestGPUFree(t *testing.T) {
	f, in := parameterized(t, "../../cmd/swagwrap/testdata/ckpt-2.onnx")
	s, err := rt.NewFilledSession(t.Context(), f, Options{Threads: 1, Provider: tested, Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := run(t, s, in...)[0].F32
	var wait sync.WaitGroup
	var wrong atomic.Int64
	for range 4 {
		wait.Go(func() {
			for range 6000 {
				copied, err := s.Carry(t.Context(), in)
				if err != nil {
					t.Error(err)
					return
				}
				out, err := s.Run(t.Context(), copied)
				Free(copied)
				if err != nil {
					t.Error(err)
					return
				}
				for i, v := range out[0].F32 {
					if v != want[i] {
						wrong.Add(1)
						break
					}
				}
			}
		})
	}
	wait.Wait()
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d of 24,000 runs are wrong", n)
	}
}
