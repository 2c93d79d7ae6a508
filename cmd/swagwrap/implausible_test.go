package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// three are copies of checkpoints of one network.
type three struct {
	t     *testing.T
	dir   string
	paths [3]string
}

// copied copies three checkpoints.
func copied(t *testing.T, from ...string) *three {
	t.Helper()
	c := &three{t: t, dir: t.TempDir()}
	for k, path := range from {
		c.paths[k] = filepath.Join(c.dir, filepath.Base(path))
		for _, name := range []string{"", ".data"} { // external data, if there is any
			b, err := os.ReadFile(path + name)
			if err == nil {
				err = os.WriteFile(c.paths[k]+name, b, 0o666)
			}
			if err != nil && name == "" {
				t.Fatal(err)
			}
		}
	}
	return c
}

func small(t *testing.T) *three {
	at := func(name string) string { return filepath.Join("testdata", name) }
	return copied(t, at("ckpt-1.onnx"), at("ckpt-2.onnx"), at("ckpt-10.onnx"))
}

// set changes one element of a tensor of checkpoint k.
func (c *three) set(k int, tensor string, index int, value float64) {
	c.t.Helper()
	c.edit(k, tensor, func(dtype weights.DType, elements []byte) {
		if dtype == weights.F64 {
			binary.LittleEndian.PutUint64(elements[8*index:], math.Float64bits(value))
			return
		}
		dtype.PutFloat32s(elements[index*int(dtype.Size()):], []float32{float32(value)})
	})
}

// equal gives the others the tensor of the first checkpoint: a constant.
func (c *three) equal(tensor string) {
	var first []byte
	for k := range c.paths {
		c.edit(k, tensor, func(_ weights.DType, elements []byte) {
			if k == 0 {
				first = append(first, elements...)
			}
			copy(elements, first)
		})
	}
}

func (c *three) edit(k int, tensor string, f func(weights.DType, []byte)) {
	c.t.Helper()
	m, err := onnxio.Open(c.paths[k])
	if err != nil {
		c.t.Fatal(err)
	}
	x := m.Tensor(tensor)
	if x == nil {
		c.t.Fatalf("%s: no tensor %q", c.paths[k], tensor)
	}
	elements := bytes.Clone(m.Elements(x))
	m.Close()
	for _, path := range []string{c.paths[k], c.paths[k] + ".data"} {
		b, err := os.ReadFile(path)
		if at := bytes.Index(b, elements); err == nil && at >= 0 {
			f(x.ElemType.DType(), b[at:at+len(elements)])
			if err := os.WriteFile(path, b, 0o666); err != nil {
				c.t.Fatal(err)
			}
			return
		}
	}
	c.t.Fatalf("%s: the elements of %q were not found", c.paths[k], tensor)
}

// at is the path of a file beside the checkpoints.
func (c *three) at(name string) string { return filepath.Join(c.dir, name) }

// ok runs a command that must work.
func (c *three) ok(args ...string) string {
	c.t.Helper()
	code, printed := program(c.t, args...)
	if code != 0 {
		c.t.Fatalf("%q: exit code %d: %s", args, code, printed)
	}
	return printed
}

// fails runs a command that must end with 65, say all of want, and leave no output.
func (c *three) fails(args []string, want ...string) {
	c.t.Helper()
	code, printed := program(c.t, args...)
	if code != 65 {
		c.t.Errorf("%q: exit code %d: %s", args, code, printed)
	}
	for _, w := range want {
		if !strings.Contains(printed, w) {
			c.t.Errorf("%q says %s, want %q", args, printed, w)
		}
	}
	if left, _ := filepath.Glob(c.at("out.*")); left != nil {
		c.t.Errorf("%q left %q", args, left)
	}
}

// A value that no training leaves, in any checkpoint and any tensor of it, is
// refused with the names of both and the index: guarantee 8 of docs/reliability.md.
func TestImplausibleWeights(t *testing.T) {
	t.Parallel()
	f16 := func(kind string) func(*testing.T) *three {
		return func(t *testing.T) *three {
			at := func(k int) string {
				return filepath.Join("..", "..", "fixtures", "exporters", "f16", kind, fmt.Sprintf("ckpt-%d.onnx", k))
			}
			return copied(t, at(1), at(2), at(3))
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	for i, x := range []struct {
		from    func(*testing.T) *three
		k       int // -1: equal in all, a constant
		tensor  string
		index   int
		value   float64
		printed string
	}{
		{small, 0, "fc.weight", 4, nan, "value NaN"},
		{small, 1, "fc.weight", 0, nan, "value NaN"},
		{small, 2, "fc.weight", 5, nan, "value NaN"},
		{small, 0, "conv.weight", 17, inf, "value +Inf"},
		{small, 1, "conv.weight", 9, inf, "value +Inf"},
		{small, 2, "conv.weight", 0, inf, "value +Inf"},
		{small, 0, "fc.bias", 2, -inf, "value -Inf"},
		{small, 1, "fc.bias", 1, -inf, "value -Inf"},
		{small, 2, "fc.bias", 0, -inf, "value -Inf"},
		{small, 0, "fc.weight", 1, 1e38, "value 1e+38"},
		{small, 1, "bn.weight", 1, -1e38, "value -1e+38"},
		{small, 2, "fc.bias", 1, 1e38, "value 1e+38"},
		{small, 0, "bn.running_mean", 1, nan, "value NaN"},
		{small, 1, "bn.running_mean", 0, 1e38, "value 1e+38"},
		{small, 2, "bn.running_mean", 0, -inf, "value -Inf"},
		{small, 0, "bn.running_var", 0, 1e38, "value 1e+38"},
		{small, 1, "bn.running_var", 1, nan, "value NaN"},
		{small, 2, "bn.running_var", 1, inf, "value +Inf"},
		{small, 2, "bn.running_var", 1, -1, "value -1"},
		{small, -1, "conv.weight", 3, nan, "value NaN"},
		{small, -1, "conv.weight", 4, inf, "value +Inf"},
		{small, -1, "fc.weight", 5, -1e38, "value -1e+38"},
		{small, -1, "bn.running_var", 0, inf, "value +Inf"},
		{f16("dynamo"), 1, "conv2.weight", 7, inf, "value +Inf"},
		{f16("dynamo"), 2, "bn2.running_var", 3, nan, "value NaN"},
		{f16("bf16-dynamo"), 0, "fc.weight", 700, 1e38, "value 1e+38"},
		{f16("f64-dynamo"), 2, "fc1.weight", 100, 1e300, "value beyond float32"},
		{f16("f64-dynamo"), 1, "bn.running_var", 2, nan, "value NaN"},
	} {
		t.Run(fmt.Sprintf("%d, %s is %v", i, x.tensor, x.value), func(t *testing.T) {
			c := x.from(t)
			k := max(x.k, 0)
			c.set(k, x.tensor, x.index, x.value)
			if x.k < 0 {
				c.equal(x.tensor)
			}
			want := fmt.Sprintf("%s: tensor %q: %s", c.paths[k], x.tensor, x.printed)
			if strings.HasPrefix(x.printed, "value -1e") || x.printed == "value 1e+38" {
				want = fmt.Sprintf("%s: tensor %q: value ", c.paths[k], x.tensor) // as the type rounds it
			}
			index, hint := fmt.Sprintf(" at index %d, want ", x.index), "hint: training diverged: leave this checkpoint out"
			c.fails(append([]string{"fit", "--task", "classes", "-o", c.at("out.npz")}, c.paths[:]...), "error: "+want, index, hint)
			c.fails(append([]string{"inspect"}, c.paths[:]...), "error: not usable: "+want, index, hint)
		})
	}
	t.Run("θ0", func(t *testing.T) {
		c := small(t)
		c.set(0, "bn.running_var", 0, inf)
		c.fails([]string{"fit", "--task", "classes", "-o", c.at("out.npz"), "--theta0", c.paths[0], c.paths[1], c.paths[2]}, c.paths[0]+`: tensor "bn.running_var": value +Inf at index 0`)
	})
	t.Run("extended", func(t *testing.T) {
		c := small(t)
		c.ok("fit", "--task", "classes", "-q", "-o", c.at("p"), c.paths[0], c.paths[1])
		for tensor, value := range map[string]float64{"fc.weight": 1e38, "bn.running_var": -1} {
			c.set(2, tensor, 1, value)
			c.fails([]string{"fit", "-o", c.at("out.npz"), "--extend", c.at("p"), c.paths[2]}, c.paths[2]+`: tensor "`, "at index 1")
			c.set(2, tensor, 1, 1)
		}
	})
}

// A member with a weight that no training leaves, or that its type cannot hold, is
// refused with the names of both.
func TestImplausibleMembers(t *testing.T) {
	t.Parallel()
	images := filepath.Join("testdata", "images.npz")
	c := small(t)
	c.set(0, "fc.weight", 3, 1.8e19)
	c.ok("fit", "--task", "classes", "-q", "-o", c.at("p"), c.paths[0], c.paths[1], c.paths[2])
	c.fails([]string{"sample", "-n", "8", "--scale", "10", "--bn-data", images, "-o", c.at("out.npz"), c.at("p")},
		c.at("p")+": member ", `: tensor "fc.weight": value `, " at index 3, want finite weights of less than 1.8e+19")

	c = copied(t, "../../fixtures/exporters/f16/dynamo/ckpt-1.onnx", "../../fixtures/exporters/f16/dynamo/ckpt-2.onnx", "../../fixtures/exporters/f16/dynamo/ckpt-3.onnx")
	for k, v := range []float64{60000, 30000, -60000} {
		c.set(k, "fc.bias", 9, v)
	}
	c.ok("fit", "--task", "classes", "-q", "-o", c.at("p"), c.paths[0], c.paths[1], c.paths[2])
	c.fails([]string{"export", "--member", "1", "--scale", "10", "--bn", "keep", "-o", c.at("out.npz"), c.at("p")},
		`tensor "fc.bias": value `, " at index 9 is beyond F16")
}

// What a network gives out that is not finite, and batch-norm statistics that are
// not, are never averaged: the run ends, or the row says why. Guarantee 9 of
// docs/reliability.md; score.txtar has one more.
func TestNonFiniteOutputs(t *testing.T) {
	t.Parallel()
	images := filepath.Join("testdata", "images.npz")
	// Weights that may be, and whose product is not.
	fitted := func(t *testing.T, about map[string]float64) *three {
		c := small(t)
		for k := range c.paths {
			for tensor, size := range about {
				c.edit(k, tensor, func(dtype weights.DType, elements []byte) {
					values := make([]float32, len(elements)/4)
					for i := range values {
						values[i] = float32(size * (1 - 0.001*float64(3*i+k)))
					}
					dtype.PutFloat32s(elements, values)
				})
			}
		}
		c.ok("fit", "--task", "classes", "-q", "-o", c.at("p"), c.paths[0], c.paths[1], c.paths[2])
		return c
	}
	sampled := func(t *testing.T, about map[string]float64) *three {
		c := fitted(t, about)
		c.ok("sample", "-q", "-n", "2", "--scale", "0.01", "--bn-data", images, "-o", c.at("e"), c.at("p"))
		return c
	}
	outputs := map[string]float64{"bn.weight": 1.7e19, "bn.bias": 1.7e19, "fc.weight": 1.7e19}
	statistics := map[string]float64{"conv.weight": 1.7e19}
	t.Run("outputs", func(t *testing.T) {
		c := sampled(t, map[string]float64{"bn.weight": 1e18, "bn.bias": 1e18, "fc.weight": 1e18})
		c.ok("score", "-q", "-o", c.at("fine.csv"), c.at("e"), images) // large, and finite
		c = sampled(t, outputs)
		c.fails([]string{"score", "-o", c.at("out.npz"), c.at("e"), images}, c.at("p"), "the network's output is not finite: class ")
		code, printed := program(t, "score", "--on-error", "skip", "-o", c.at("rows.csv"), c.at("e"), images)
		rows, err := os.ReadFile(c.at("rows.csv"))
		if n := strings.Count(string(rows), "the network's output is not finite: class "); code != 3 || err != nil || n == 0 ||
			!strings.Contains(printed, fmt.Sprintf("%d of 10 rows have an error and no prediction", n)) {
			t.Errorf("exit code %d, %d rows: %s", code, n, printed)
		}
		for line := range strings.Lines(string(rows)) {
			if strings.Contains(line, "NaN") && !strings.Contains(line, "not finite") || strings.Contains(line, "not finite") && !strings.Contains(line, ",,,,,") {
				t.Errorf("row %s", line)
			}
		}
		c.fails([]string{"compare", "--methods", "swag", "-n", "2", "--bn-data", images, c.at("p"), images}, "the network's output is not finite: class ")
	})
	t.Run("statistics", func(t *testing.T) {
		c := fitted(t, statistics)
		printed := []string{`tensor "bn.running_mean": batch 0: statistics of channel `, " are not finite (mean "}
		c.fails([]string{"sample", "-n", "2", "--scale", "0", "--bn-data", images, "-o", c.at("out.npz"), c.at("p")}, printed...)
		c.fails([]string{"export", "--bn-data", images, "-o", c.at("out.npz"), c.at("p")}, printed...)
		c.fails([]string{"compare", "--methods", "swa", "--bn-data", images, c.at("p"), images}, printed...)
	})
	t.Run("certain and wrong", func(t *testing.T) {
		c := sampled(t, map[string]float64{"bn.bias": 1e6, "fc.weight": 1e6})
		printed := c.ok("score", "-o", c.at("sure.csv"), c.at("e"), images)
		if !strings.Contains(printed, "warning: NLL is infinite: ") || !strings.Contains(printed, " of 10 labels have probability 0") {
			t.Errorf("says %s", printed)
		}
	})
}
