package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// forge writes a file like another but for one number, with right checksums.
func forge(t *testing.T, from, to, section string, index int, value float64) {
	t.Helper()
	st, err := weights.OpenSafetensors(from)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	f, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := weights.NewSafetensorsWriter(f, st.Sections, st.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range st.Sections {
		v, _ := st.View(s.Name)
		data := bytes.Clone(v.Data)
		switch {
		case s.Name != section:
		case s.DType == weights.F64:
			binary.LittleEndian.PutUint64(data[8*index:], math.Float64bits(value))
		default:
			binary.LittleEndian.PutUint32(data[4*index:], math.Float32bits(float32(value)))
		}
		if _, err := w.Section(i).Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A posterior, an ensemble or a checkpoint with a number that no fit leaves is refused
// wherever its numbers are copied, though its checksums are right, and inspect tells.
func TestImpossibleNumbers(t *testing.T) {
	t.Parallel()
	images := filepath.Join("testdata", "images.npz")
	nan, inf := math.NaN(), math.Inf(1)
	c := small(t)
	fit := []string{"fit", "--task", "classes", "-q", "-o", c.at("p"), c.paths[0], c.paths[1]}
	c.ok(fit...)
	c.ok("sample", "-q", "-n", "2", "--bn-data", images, "-o", c.at("e"), c.at("p"))
	for i, x := range []struct {
		section string
		index   int
		value   float64
		printed string
	}{
		{"mean", 3, nan, `tensor "conv.weight": value NaN at index 3, want finite weights of less than 1.8e+19`},
		{"mean", 0, -1e30, `tensor "conv.weight": value -1e+30 at index 0, want finite weights`},
		{"mean", 0, 1e300, `tensor "conv.weight": value beyond float32 at index 0, want finite weights`},
		{"variance", 2, -1e30, `tensor "conv.weight": value -1e+30 at index 2, want finite variances of 0 to 3.4e+38`},
		{"variance", 2, -1e-9, `tensor "conv.weight": value -1e-09 at index 2, want finite variances`},
		{"variance", 2, inf, `tensor "conv.weight": value beyond float32 at index 2, want finite variances`},
		{"deviations", 1, nan, `tensor "conv.weight": value NaN at index 1, want finite deviations`},
		{"deviations", 0, 1e30, `tensor "conv.weight": value 1e+30 at index 0, want finite deviations`},
		{"trajectory", 0, -inf, `tensor "trajectory": value -Inf at index 0, want finite weights`},
		{"statistics", 0, nan, `tensor "bn.running_mean": value NaN at index 0, want finite numbers`},
		{"statistics", 2, -1, `row 0: tensor "bn.running_var": value -1 at index 0, want finite batch-norm variances`},
		{"statistics", 7, 1e32, `row 1: tensor "bn.running_var": value 1e+32 at index 1, want finite batch-norm variances`},
		{"statistics", 5, 1e30, `row 1: tensor "bn.running_mean": value 1e+30 at index 1, want finite batch-norm means`},
	} {
		bad := c.at(fmt.Sprint("bad-", i))
		forge(t, c.at("p"), bad, x.section, x.index, x.value)
		want := fmt.Sprintf("error: %s: section %q: %s", bad, x.section, x.printed)
		for _, args := range [][]string{
			{"fit", "-o", c.at("out.npz"), "--extend", bad, c.paths[2]},
			{"export", "--bn", "keep", "-o", c.at("out.npz"), bad},
			{"export", "--bn", "keep", "-o", c.at("out.onnx"), bad},
			{"export", "--checkpoint", c.paths[0], "-o", c.at("out.onnx"), bad},
			{"sample", "--bn", "keep", "-n", "2", "-o", c.at("out.npz"), bad},
			{"inspect", bad},
			{"inspect", "--json", bad},
		} {
			c.fails(args, want)
		}
	}
	for _, x := range []struct {
		index   int
		value   float64
		printed string
	}{
		{1, nan, "member 0: value NaN at index 1, want finite batch-norm statistics"},
		{6, -0.5, `row 1: tensor "bn.running_var": value -0.5 at index 0, want finite batch-norm variances`},
	} {
		forge(t, c.at("e"), c.at("bad"), "statistics.0", x.index, x.value)
		want := fmt.Sprintf("error: %s: section \"statistics.0\": %s", c.at("bad"), x.printed)
		c.fails([]string{"inspect", c.at("bad")}, want)
		c.fails([]string{"export", "--member", "1", "-o", c.at("out.npz"), c.at("bad")}, want)
		c.fails([]string{"export", "--member", "1", "-o", c.at("out.onnx"), c.at("bad")}, want)
		c.fails([]string{"export", "-o", c.at("out.onnx"), c.at("bad")}, want)
		c.fails([]string{"score", "-o", c.at("out.npz"), c.at("bad"), images}, want)
	}
	for tensor, value := range map[string]float64{"fc.weight": nan, "bn.running_var": -1, "conv.weight": 1e30} {
		c.set(2, tensor, 1, value)
		want := fmt.Sprintf("error: %s: tensor %q: value ", c.paths[2], tensor)
		c.fails([]string{"export", "--template", c.paths[0], "--checkpoint", c.paths[2], "-o", c.at("out.onnx")}, want, "at index 1, want finite")
		c.fails([]string{"export", "--checkpoint", c.paths[2], "-o", c.at("out.onnx"), c.at("p")}, want)
		c.set(2, tensor, 1, 1)
	}
	c.ok("export", "-q", "--checkpoint", c.paths[2], "-o", c.at("fine.onnx"), c.at("p"))
}
