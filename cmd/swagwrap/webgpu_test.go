//go:build webgpu

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ort"
)

// The tests run on a software device, which fixtures/webgpu/lavapipe.sh prepares. No number here is a GPU's speed.
var gpu = device{provider: "webgpu", left: map[string]int{"Gather": 7}, auto: ort.F32, why: "precision f32: the GPU is the software renderer llvmpipe"}

// doctor names the device. Without a driver the error has the reason, and says what to do.
func TestWebGPUMissing(t *testing.T) {
	j := newJob(t)
	if printed := j.must("doctor"); !regexp.MustCompile(`(?m)^webgpu .*its library is whole; llvmpipe .*Mesa .*: right, in .* GFLOP/s`).MatchString(printed) {
		t.Errorf("doctor says %s", printed)
	}
	t.Setenv("VK_DRIVER_FILES", "/nonexistent.json")
	t.Setenv("VK_ICD_FILENAMES", "/nonexistent.json")
	printed, code := j.run("doctor", "--provider", "webgpu")
	if code != 69 || !strings.Contains(printed, "WebGPU finds no usable GPU: ") || !strings.Contains(printed, "hint: install the Vulkan driver of your GPU") {
		t.Errorf("%d, %s", code, printed)
	}
	if printed, code = j.run("score", "--provider", "webgpu", "--precision", "bf16", "-o", "x.csv", "e.safetensors", j.fixtures+"/val.npz"); code != 64 || !strings.Contains(printed, "--provider webgpu computes in f32 or f16") {
		t.Errorf("%d, %s", code, printed)
	}
}
