package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLast: a run that is saved from random weights on has first checkpoints on the way to the others. fit says where to start, and try
// starts there. A run that goes on from trained weights gives no warning. --last K is the same as giving the last K files.
func TestLast(t *testing.T) {
	t.Parallel()
	const name, size = "first-1.onnx", 24 // floats of its tensor
	model, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	// Values of a tensor of this size stand behind field 9, raw_data, with their length.
	at := bytes.Index(model, []byte{9<<3 | 2, 4 * size})
	if at < 0 {
		t.Fatalf("%s: no tensor of %d floats", name, size)
	}
	at += 2
	dir := t.TempDir()
	write := func(run string, direct int) string {
		r := rand.New(rand.NewPCG(4, 2))
		value := make([]float64, size)
		for i := range value {
			value[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(model[at+4*i:])))
		}
		path := filepath.Join(dir, run)
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
		for epoch := range 8 {
			file := bytes.Clone(model)
			for i := range value {
				binary.LittleEndian.PutUint32(file[at+4*i:], math.Float32bits(float32(value[i])))
				value[i] += 0.1 * r.NormFloat64()
				if epoch < direct {
					value[i] += 0.4 * float64(1-i%2*2)
				}
			}
			if err := os.WriteFile(filepath.Join(path, fmt.Sprintf("epoch-%d.onnx", epoch)), file, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	run := func(args ...string) string {
		t.Helper()
		code, printed := program(t, args...)
		if code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, printed)
		}
		return strings.Join(strings.Fields(printed), " ")
	}
	out := func(name string) string { return filepath.Join(dir, name) }
	same := func(a, b string) {
		t.Helper()
		x, err := os.ReadFile(a)
		y, also := os.ReadFile(b)
		if err != nil || also != nil || !bytes.Equal(x, y) {
			t.Errorf("%s and %s differ, or %v, %v", a, b, err, also)
		}
	}
	whole, going := write("whole", 4), write("going", 0)
	if printed := run("fit", "--task", "classes", "-o", out("going.safetensors"), going); strings.Contains(printed, "on the way") {
		t.Errorf("a run from trained weights: %s", printed)
	}
	printed := run("fit", "--task", "classes", "-o", out("all.safetensors"), whole)
	const want = "4 of 8 checkpoints, those before epoch-4.onnx, are on the way to the others: they pull the mean back and widen the variance; " +
		"start at epoch-4.onnx, with the last 4"
	if !strings.Contains(printed, want) {
		t.Errorf("got %s, want %s", printed, want)
	}
	printed = run("fit", "--task", "classes", "--last", "4", "-o", out("last.safetensors"), whole)
	if want := "the last 4 of 8 checkpoints are taken, from " + filepath.Join(whole, "epoch-4.onnx") + " on (--last)"; !strings.Contains(printed, want) {
		t.Errorf("got %s, want %s", printed, want)
	}
	args := []string{"fit", "--task", "classes", "-o", out("named.safetensors")}
	for epoch := 4; epoch < 8; epoch++ {
		args = append(args, filepath.Join(whole, fmt.Sprintf("epoch-%d.onnx", epoch)))
	}
	run(args...)
	same(out("last.safetensors"), out("named.safetensors"))
	run("fit", "--task", "classes", "--last", "9", "-o", out("nine.safetensors"), whole)
	same(out("nine.safetensors"), out("all.safetensors"))

	test := out("test.jsonl")
	if err := os.WriteFile(test, []byte(strings.Repeat("{\"ids\": [3], \"label\": 1}\n{\"ids\": [2], \"label\": 0}\n", 8)), 0o666); err != nil {
		t.Fatal(err)
	}
	try := func(result, left string, more ...string) {
		t.Helper()
		printed := run(append([]string{"try", "-o", out(result), "-n", "2", "--methods", "swa"}, append(more, whole, test)...)...)
		const says = "the first 4 of 8 checkpoints are left out, since the weights still go in one direction there (--last 8 takes all)"
		if strings.Contains(printed, says) != (left == "last.safetensors") {
			t.Errorf("%q: %s", more, printed)
		}
		same(filepath.Join(out(result), "posterior.safetensors"), out("tried-"+left))
	}
	// the same paths, relative to the folder of the posterior
	for _, name := range []string{"last", "all"} {
		if err := os.MkdirAll(out("fit-"+name), 0o777); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(out("fit-"+name), "posterior.safetensors")
		run("fit", "--task", "classes", "--last", map[string]string{"last": "4", "all": "8"}[name], "-o", path, whole)
		if err := os.Rename(path, out("tried-"+name+".safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	try("chosen", "last.safetensors")
	try("everything", "all.safetensors", "--last", "8")
	script, err := os.ReadFile(filepath.Join(out("chosen"), "commands.sh"))
	if err != nil || !strings.Contains(string(script), " --last 4 ") || strings.Count(string(script), " fit ") != 1 {
		t.Errorf("commands: %s, %v", script, err)
	}
}
