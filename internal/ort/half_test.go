package ort

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
)

// In float16 networks of all exporters give nearly the scores of float32, from the same inputs. The CPU provider computes many nodes in
// float32, and rounds between them. Control flow stays in float32.
func TestHalf(t *testing.T) {
	refused := map[string]string{}
	if !atLeast(rt.Version(), "1.32.0") {
		refused["transformer-tied/dynamo"] = "Type Error"
	}
	ran := 0
	for _, pattern := range []string{"cmd/swagwrap/testdata/*-1.onnx", "fixtures/recipes/*/model.onnx", "fixtures/exporters/*/*/ckpt-2.onnx", "fixtures/cifar/*/model.onnx", "fixtures/dense/*/model.onnx"} {
		paths, err := filepath.Glob("../../" + pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, path := range paths {
			m, err := onnxio.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			filled, err := m.Runtime()
			in := some(m)
			if err != nil || in == nil || strings.Contains(path, "noisy") || strings.Contains(path, "nothing") ||
				strings.Contains(path, "float16") { // cannot run, is in another type, draws random numbers, gives zeros, or is in float16 already
				continue
			}
			exact, err := rt.NewFilledSession(t.Context(), filled, Options{Threads: 1})
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			defer exact.Close()
			half, err := rt.NewFilledSession(t.Context(), filled, Options{Threads: 1, Provider: Provider{Precision: F16}})
			name := strings.TrimPrefix(filepath.Dir(path), "../../fixtures/exporters/")
			if why := refused[name]; why != "" {
				if err == nil || !strings.Contains(err.Error(), why) {
					t.Errorf("%s: %v, want %s", path, err, why)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			defer half.Close()
			want, got := run(t, exact, in...)[0].F32, run(t, half, in...)[0].F32
			largest, separate := 0.0, 0.0
			for i, v := range want {
				largest = max(largest, math.Abs(float64(v)))
				separate = max(separate, math.Abs(float64(v-got[i])))
			}
			if separate > 0.005*largest || separate == 0 || len(got) == 0 {
				t.Errorf("%s: float16 is %.2g from scores up to %.2g", path, separate, largest)
			}
			ran++
		}
	}
	if ran < 60 {
		t.Errorf("%d networks ran", ran)
	}
}

// An input that float16 cannot hold becomes the largest number that it can.
func TestHalfLargest(t *testing.T) {
	m, err := onnxio.Parse("linear.onnx", read(t, "linear.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	filled, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewFilledSession(t.Context(), filled, Options{Threads: 1, Provider: Provider{Precision: F16}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := run(t, s, Tensor{Shape: []int64{1, 3}, F32: []float32{1e6, 0, 0}})[0].F32[0]; got < 65504 || got > 65520 { // ONNX Runtime may add the bias of 10 in float32
		t.Errorf("got %v", got)
	}
}

// some returns inputs for a model, in batches of four.
func some(m *onnxio.Model) (in []Tensor) {
	for _, v := range m.FeedInputs() {
		t, n := Tensor{Name: v.Name, Shape: slices.Clone(v.Shape)}, int64(1)
		for i, d := range t.Shape {
			if d < 0 && i == 0 {
				t.Shape[i] = 4
			} else if d < 0 {
				t.Shape[i] = 16
			}
			n *= t.Shape[i]
		}
		for i := range n {
			x := math.Sin(float64(i)) / 2
			switch v.ElemType {
			case onnxio.Float:
				t.F32 = append(t.F32, float32(x))
			case onnxio.Uint8:
				t.U8 = append(t.U8, uint8(i))
			case onnxio.Int64:
				t.I64 = append(t.I64, i%2)
			default:
				if t.Type = v.ElemType.String(); RawSize(t.Type) == 0 || v.ElemType == onnxio.Double {
					return nil
				}
				t.Raw = append(t.Raw, 1)
				t.Raw = append(t.Raw, make([]byte, RawSize(t.Type)-1)...)
			}
		}
		in = append(in, t)
	}
	return in
}
