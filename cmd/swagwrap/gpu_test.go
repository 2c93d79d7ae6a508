//go:build webgpu || cuda

package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/step"
)

// A device is what the tests of a GPU run on. webgpu_test.go and cuda_test.go set it.
type device struct {
	provider string
	left     map[string]int // nodes of the batch-norm pass of MNIST that run on the processor
	auto     string         // the precision that --precision auto takes
	why      string         // what auto says about it
}

func TestGPUScore(t *testing.T) {
	j := newJob(t)
	data := j.fixtures + "/val.npz"
	printed := j.must("sample", "--provider", gpu.provider, "-n", "4", "--bn-samples", "256", "--bn-data", j.fixtures+"/train.npz", "-o", "gpu.safetensors", "p.safetensors")
	if !strings.Contains(printed, "batch norm by "+gpu.provider+" f32 against cpu f32, 4 of 4 members") || strings.Contains(printed, "nodes run on the CPU provider") != (len(gpu.left) > 0) {
		t.Errorf("sample says %s", printed)
	}
	if e, err := ensemble.Open(filepath.Join(j.dir, "gpu.safetensors")); err != nil || !maps.Equal(e.Components[0].BatchNorm.Rounding.CPUNodes, gpu.left) {
		t.Errorf("%+v, %v", e, err)
	}
	score := func(out string, args ...string) string {
		return j.must(append([]string{"score", "--probs", "-b", "100", "-o", out, "gpu.safetensors", data}, args...)...)
	}
	score("cpu.csv")
	printed = score("gpu.csv", "-v", "--provider", gpu.provider)
	if !strings.Contains(printed, gpu.provider+" f32 against cpu f32, 4 of 4 members on 16 examples") || !strings.Contains(printed, "provider "+gpu.provider+" takes all nodes") {
		t.Errorf("score says %s", printed)
	}
	if d := furthest(j.probs("gpu.csv"), j.probs("cpu.csv")); d > 1e-5 || d == 0 {
		t.Errorf("the GPU is %v from the CPU", d)
	}
	var meta struct {
		Provider string
		Rounding struct {
			Largest  float64
			Used     string
			CPUNodes map[string]int `json:"cpu_nodes"`
		}
	}
	if err := json.Unmarshal(j.read("gpu.csv.meta.json"), &meta); err != nil || meta.Provider != gpu.provider+" f32" || meta.Rounding.Largest <= 0 || meta.Rounding.Largest > 1e-5 || len(meta.Rounding.CPUNodes) > 0 {
		t.Errorf("%+v, %v", meta, err)
	}
	printed = score("f16.csv", "--provider", gpu.provider, "--precision", "f16")
	if d := furthest(j.probs("f16.csv"), j.probs("cpu.csv")); !strings.Contains(printed, gpu.provider+" f16 against cpu f32, 4 of 4 members") || d > 0.02 || d < 1e-4 {
		t.Errorf("f16 is %v from the CPU: %s", d, printed)
	}
	printed = score("auto.csv", "--provider", gpu.provider, "--precision", "auto")
	taken := map[string]string{ort.F32: "gpu.csv", ort.F16: "f16.csv"}[gpu.auto]
	if !strings.Contains(printed, gpu.why) || string(j.read("auto.csv")) != string(j.read(taken)) {
		t.Errorf("--precision auto: %s", printed)
	}
	for i, threads := range []string{"1", "4"} {
		score("again.csv", "--force", "--provider", gpu.provider, "-j", threads)
		if string(j.read("again.csv")) != string(j.read("gpu.csv")) {
			t.Errorf("run %d, with %s threads, gives other bits", i, threads)
		}
	}
	score("part.csv", "--provider", gpu.provider, "--part", "0/2")
	if printed, code := j.run("score", "--probs", "-b", "100", "--part", "1/2", "-o", "part.csv", "gpu.safetensors", data); code != 0 {
		t.Errorf("part on the CPU: %s", printed)
	}
	if printed, code := j.run("merge", "-o", "part.csv"); code == 0 || !strings.Contains(printed, "provider") {
		t.Errorf("parts of two providers: %d, %s", code, printed)
	}
	score("part.csv", "--provider", gpu.provider, "--part", "1/2", "--force")
	j.must("merge", "-o", "part.csv")
	if string(j.read("part.csv")) != string(j.read("gpu.csv")) {
		t.Error("parts give other bits")
	}
}

// A run that is interrupted ends in order, and goes on to the same bytes.
func TestGPUInterrupt(t *testing.T) {
	j := newJob(t)
	data := j.fixtures + "/test.npz"
	args := []string{"score", "-b", "50", "--provider", gpu.provider, "-o", "out.csv", "e.safetensors", data}
	for _, s := range []struct {
		at     stop
		signal os.Signal
		code   int
	}{{stop{step.Begun, 1}, syscall.SIGINT, 130}, {stop{step.Computed, 1}, syscall.SIGKILL, -1}} {
		c := exec.Command(j.program, append(args, "--resume")...)
		c.Dir = j.dir
		if printed, err := s.at.strike(c, s.signal); err != nil || c.ProcessState.ExitCode() != s.code {
			t.Errorf("%v at %v: exit code %d, %v: %s", s.signal, s.at, c.ProcessState.ExitCode(), err, printed)
		}
	}
	if printed, code := j.run("score", "-b", "50", "--resume", "-o", "out.csv", "e.safetensors", data); code != 65 || !strings.Contains(printed, "provider") {
		t.Errorf("going on with the CPU: %d, %s", code, printed)
	}
	j.must(append(args, "--resume")...)
	args[6] = "whole.csv"
	j.must(args...)
	if string(j.read("out.csv")) != string(j.read("whole.csv")) {
		t.Error("other bits after an interruption")
	}
}

// Pixels and tokens, with their own shapes.
func TestGPUDense(t *testing.T) {
	j := newJob(t)
	for _, x := range []struct {
		folder, data string
		fit          []string
	}{{"pixels", "test.npz", []string{"--ignore-index", "255", "--preprocess", "input-size=16x24"}}, {"tokens", "test.jsonl", []string{"--pad", "0"}}} {
		dir := filepath.Join(j.fixtures, "..", "dense", x.folder)
		states, _ := filepath.Glob(filepath.Join(dir, "*.pt"))
		j.must(append(append([]string{"fit", "-q", "--force", "--task", "classes", "--template", dir + "/model.onnx", "-o", "d.safetensors"}, x.fit...), states...)...)
		j.must("sample", "-q", "--force", "--method", "iterates", "-o", "de.safetensors", "d.safetensors")
		printed := j.must("score", "--force", "--provider", gpu.provider, "--arrays", "pixels", "-o", "d.csv", "de.safetensors", dir+"/"+x.data)
		want := map[string]string{"pixels": "NLL 0.3106", "tokens": "NLL 0.9793"}[x.folder]
		if !strings.Contains(printed, want) {
			t.Errorf("%s: %s, want %s as on the CPU", x.folder, printed, want)
		}
	}
}
