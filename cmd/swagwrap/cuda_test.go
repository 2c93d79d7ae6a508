//go:build cuda

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ort"
)

// The tests need an NVIDIA GPU, and NVIDIA's libraries in the active Python environment.
var gpu = device{provider: "cuda", auto: ort.F32}

// doctor names the GPU. A GPU that is hidden is an error with its reason.
func TestCUDAMissing(t *testing.T) {
	j := newJob(t)
	printed := j.must("doctor")
	if !regexp.MustCompile(`(?m)^cuda .*its library is whole; NVIDIA .* MiB: right, in .* GFLOP/s; swagwrap was tested on two GPUs`).MatchString(printed) {
		t.Errorf("doctor says %s", printed)
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "-1")
	printed, code := j.run("doctor", "--provider", "cuda")
	if code != 69 || !strings.Contains(printed, "hint: `nvidia-smi` lists the GPUs") {
		t.Errorf("%d, %s", code, printed)
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "0")
	printed, code = j.run("score", "--provider", "cuda", "--device", "7", "-o", "x.csv", "e.safetensors", j.fixtures+"/val.npz")
	if code != 69 || !strings.Contains(printed, "hint: `nvidia-smi` lists the GPUs") {
		t.Errorf("%d, %s", code, printed)
	}
	if printed, code = j.run("score", "--provider", "cuda", "--precision", "bf16", "-o", "x.csv", "e.safetensors", j.fixtures+"/val.npz"); code != 64 || !strings.Contains(printed, "--provider cuda computes in f32 or f16") {
		t.Errorf("%d, %s", code, printed)
	}
}
