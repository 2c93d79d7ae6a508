//go:build openvino

package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

func TestOpenVINOScore(t *testing.T) {
	j := newJob(t)
	score := func(out string, args ...string) string {
		return j.must(append([]string{"score", "--probs", "-o", out, "e.safetensors", j.fixtures + "/val.npz"}, args...)...)
	}
	score("cpu.csv")
	f32 := score("f32.csv", "-v", "--provider", "openvino")
	if !strings.Contains(f32, "provider openvino takes all nodes") || strings.Contains(f32, "against f32") {
		t.Errorf("in f32: %s", f32)
	}
	bf16 := score("bf16.csv", "--provider", "openvino", "--precision", "bf16,measured")
	if !strings.Contains(bf16, "openvino bf16 against f32, 4 of 6 members on 256 examples") {
		t.Errorf("in bf16: %s", bf16)
	}
	estimate := j.must("score", "--estimate", "--provider", "openvino", "--precision", "bf16", "e.safetensors", j.fixtures+"/val.npz")
	if !strings.Contains(estimate, "openvino bf16 against f32, 4 of 6 members on 256 examples") {
		t.Errorf("an estimate in bf16: %s", estimate)
	}
	exact := j.probs("cpu.csv")
	if d := furthest(j.probs("f32.csv"), exact); d > 1e-5 || d == 0 {
		t.Errorf("f32 on OpenVINO is %v from the CPU provider", d)
	}
	if d := furthest(j.probs("bf16.csv"), exact); d > 0.1 || d < 1e-4 {
		t.Errorf("bf16 is %v from f32: is it in use?", d)
	}

	var meta struct {
		Provider    string
		ONNXRuntime string
		Rounding    struct {
			Mean, Largest, RMS float64
			NLL                *float64
			MonteCarlo         float64 `json:"monte_carlo"`
			Used               string
		}
	}
	if err := json.Unmarshal(j.read("bf16.csv.meta.json"), &meta); err != nil {
		t.Fatal(err)
	}
	r := meta.Rounding
	if meta.Provider != "openvino bf16" || meta.ONNXRuntime != ort.OpenVINOVersion || r.Mean <= 0 || r.Largest < r.RMS || r.NLL == nil || r.MonteCarlo < r.RMS || r.Used != ort.BF16 {
		t.Errorf("%+v", meta)
	}

	again := score("again.csv", "--provider", "openvino", "--precision", "bf16", "-j", "1")
	if strings.Contains(again, "against f32") || strings.Contains(string(j.read("again.csv.meta.json")), `"rounding"`) {
		t.Errorf("measured without being asked: %s", again)
	}
	if string(j.read("again.csv")) != string(j.read("bf16.csv")) {
		t.Error("another number of threads gives other bits")
	}

	// Whoever goes on, or has a part of it, computes alike.
	printed, code := j.run("score", "--probs", "--resume", "-o", "bf16.csv", "--provider", "openvino", "e.safetensors", j.fixtures+"/val.npz")
	if code != 65 || !strings.Contains(printed, `provider was "openvino bf16" and is "openvino f32"`) {
		t.Errorf("--resume in f32 ends with %d: %s", code, printed)
	}
	score("parts.csv", "--part", "0/2", "--provider", "openvino")
	score("parts.csv", "--part", "1/2")
	if printed, code = j.run("merge", "-o", "parts.csv"); code != 65 || !strings.Contains(printed, "provider") {
		t.Errorf("merge of parts by two providers ends with %d: %s", code, printed)
	}

	// One member has no Monte Carlo error: auto takes f32, bf16 insists.
	j.must("sample", "-q", "--method", "swa", "--bn-samples", "1024", "--bn-data", j.fixtures+"/train.npz", "-o", "e.safetensors", "--force", "p.safetensors")
	if ort.FastBF16() != "" {
		few := filepath.Join(fewImages(t, j.fixtures, 100), "test.npz")
		if printed = j.must("score", "-o", "few.csv", "--provider", "openvino", "--precision", "auto", "e.safetensors", few); !strings.Contains(printed, "precision f32: so few predictions") {
			t.Errorf("auto: %s", printed)
		}
		printed = j.must("score", "--probs", "-o", "swa.csv", "--provider", "openvino", "--precision", "auto", "e.safetensors", j.fixtures+"/test.npz")
		if !strings.Contains(printed, "precision f32: bf16 changes more") || !strings.Contains(string(j.read("swa.csv.meta.json")), `"provider": "openvino f32"`) {
			t.Errorf("auto: %s", printed)
		}
	}
	if printed = score("swa-bf16.csv", "--provider", "openvino", "--precision", "bf16,measured"); !strings.Contains(printed, "is used as asked") || !strings.Contains(string(j.read("swa-bf16.csv.meta.json")), `"insisted": true`) {
		t.Errorf("insisted: %s", printed)
	}
}

// Statistics computed in bf16 are close to those of float32, and are recorded as such; in
// float32 they are the CPU provider's.
func TestOpenVINOSample(t *testing.T) {
	j := newJob(t)
	sample := func(out string, args ...string) *ensemble.Component {
		j.must(append([]string{"sample", "-q", "-n", "2", "--bn-samples", "1024", "--bn-data", j.fixtures + "/train.npz", "-o", out, "p.safetensors"}, args...)...)
		e, err := ensemble.Open(filepath.Join(j.dir, out))
		if err != nil {
			t.Fatal(err)
		}
		return &e.Components[0]
	}
	cpu := sample("cpu.safetensors")
	auto := sample("auto.safetensors", "--provider", "openvino", "--precision", "auto")
	bf16 := sample("bf16.safetensors", "--provider", "openvino", "--precision", "bf16,measured")
	if b := cpu.BatchNorm; b.Provider != "" || b.ONNXRuntime != "" {
		t.Errorf("%+v", b)
	}
	if b := auto.BatchNorm; b.Provider != "cpu f32" || b.ONNXRuntime != ort.OpenVINOVersion {
		t.Errorf("%+v", b)
	}
	if b := bf16.BatchNorm; b.Provider != "openvino bf16" || b.ONNXRuntime != ort.OpenVINOVersion {
		t.Errorf("%+v", b)
	}
	if cpu.BatchNorm.Rounding != nil || auto.BatchNorm.Rounding != nil {
		t.Error("a measurement in float32")
	}
	if asked := sample("asked.safetensors", "--provider", "openvino", "--precision", "bf16"); asked.BatchNorm.Rounding != nil {
		t.Error("measured without being asked")
	}
	// What it changes is printed, and kept.
	r := bf16.BatchNorm.Rounding
	printed := j.must("sample", "-n", "2", "--bn-samples", "1024", "--bn-data", j.fixtures+"/train.npz", "-o", "said.safetensors", "--provider", "openvino", "--precision", "bf16,measured", "p.safetensors")
	if r == nil || r.BatchNorm != "openvino bf16" || r.Members != 2 || r.Of != 2 || r.Examples != 64 || !(r.RMS > 0 && r.RMS < r.MonteCarlo) || !strings.Contains(printed, r.String()) {
		t.Errorf("%+v: %s", r, printed)
	}
	p, err := swag.Open(filepath.Join(j.dir, "p.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	layer := p.Layout.Role(weights.Statistic)
	for _, test := range []struct {
		of          *ensemble.Component
		mean, worst float64
	}{{auto, 1e-5, 1e-4}, {bf16, 5e-3, 5e-2}} {
		sum, worst, n := 0.0, 0.0, 0.0
		for k, row := range test.of.Statistics {
			for _, t := range layer {
				if !strings.HasSuffix(t.Name, "running_var") {
					continue
				}
				for c := t.Offset; c < t.Offset+t.Len(); c++ {
					was := float64(cpu.Statistics[k][c])
					d := math.Abs(float64(row[c])-was) / was
					sum, worst, n = sum+d, max(worst, d), n+1
				}
			}
		}
		if n == 0 || sum/n > test.mean || worst > test.worst {
			t.Errorf("%s: variances differ by %.2g on average, %.2g at most", test.of.BatchNorm.Provider, sum/n, worst)
		}
	}
}

// Networks of several inputs, of arrays, of a table, and of lists that are filled up, say in bfloat16 what they say in
// float32, but for its rounding; in one run and in parts; and their batch-norm passes and studies run.
func TestOpenVINOInputs(t *testing.T) {
	j := newJob(t)
	data := absolute(t, "testdata")
	bf16 := []string{"--provider", "openvino", "--precision", "bf16"}
	for _, of := range []struct{ name, examples, fit string }{
		{"beside", "beside.npz", ""}, {"tokens", "tokens.npz", ""}, {"tokens", "tokens.parquet", "--pad=ids=0,mask=0"},
	} {
		fit := []string{"fit", "-q", "--force", "--task", "classes", "-o", "i.safetensors"}
		if of.fit != "" {
			fit = append(fit, of.fit)
		}
		examples := filepath.Join(data, of.examples)
		with := func(command []string, more ...string) []string { return append(append(command, bf16...), more...) }
		j.must(append(fit, filepath.Join(data, of.name+"-1.onnx"), filepath.Join(data, of.name+"-2.onnx"))...)
		j.must("sample", "-q", "--force", "-n", "4", "--bn-data", examples, "-o", "i-e.safetensors", "i.safetensors")
		j.must("score", "-q", "--force", "-b", "8", "--probs", "-o", "f32.csv", "i-e.safetensors", examples)
		j.must(with([]string{"score", "-q", "--force", "-b", "8", "--probs", "-o", "bf16.csv"}, "i-e.safetensors", examples)...)
		f32 := j.probs("f32.csv")
		if d := furthest(f32, j.probs("bf16.csv")); len(f32) != 3*40 || d == 0 || d > 0.02 { // bf16 has 8 bits
			t.Errorf("%s: %d probabilities are off by %v", of.examples, len(f32), d)
		}
		for _, part := range []string{"0/2", "1/2"} {
			j.must(with([]string{"score", "-q", "--force", "-b", "8", "--probs", "--part", part, "-o", "part.csv"}, "i-e.safetensors", examples)...)
		}
		j.must("merge", "-q", "--force", "-o", "part.csv")
		if string(j.read("part.csv")) != string(j.read("bf16.csv")) {
			t.Errorf("%s: parts say something else", of.examples)
		}
		j.must(with([]string{"sample", "-q", "--force", "-n", "2", "--bn-data", examples, "-o", "bf16-e.safetensors"}, "i.safetensors")...)
		for _, command := range [][]string{{"sweep", "-n", "2"}, {"ood", "-n", "2", "--methods", "swag"}, {"geometry"}} {
			command = with(append(command, "-q", "--bn-data", examples), "i.safetensors", examples)
			if command[0] == "ood" {
				command = append(command, examples)
			}
			j.must(command...)
		}
	}
}

// An example without usable scores costs its own row, in a measurement too; a study measures
// predictions and batch-norm passes together.
func TestOpenVINORounding(t *testing.T) {
	j := newJob(t)
	c := small(t)
	images := absolute(t, "testdata", "images.npz")
	for k := range c.paths { // weights that may be, and whose product is not
		for _, tensor := range []string{"bn.weight", "bn.bias", "fc.weight"} {
			c.edit(k, tensor, func(dtype weights.DType, elements []byte) {
				values := make([]float32, len(elements)/4)
				for i := range values {
					values[i] = float32(1.7e19 * (1 - 0.001*float64(3*i+k)))
				}
				dtype.PutFloat32s(elements, values)
			})
		}
	}
	j.must("fit", "-q", "--task", "classes", "-o", "huge.safetensors", c.paths[0], c.paths[1], c.paths[2])
	j.must("sample", "-q", "-n", "2", "--scale", "0.01", "--bn-data", images, "-o", "huge-e.safetensors", "huge.safetensors")
	args := []string{"score", "--provider", "openvino", "--precision", "bf16,measured", "-o", "huge.csv", "huge-e.safetensors", images}
	if printed, code := j.run(args...); code != 65 || !strings.Contains(printed, "the network's output is not finite: class ") {
		t.Errorf("exit code %d: %s", code, printed)
	}
	printed, code := j.run(append(args, "--on-error", "skip")...)
	if code != 3 || !strings.Contains(printed, "without usable scores; ") || !strings.Contains(printed, "rows have an error and no prediction") {
		t.Errorf("exit code %d: %s", code, printed)
	}

	printed = j.must("compare", "--methods", "swag", "-n", "2", "--bn-data", j.fixtures+"/train.npz", "--provider", "openvino", "--precision", "bf16,measured", "p.safetensors", j.fixtures+"/val.npz")
	if !strings.Contains(printed, "openvino bf16, batch norm too, against f32, 2 of 2 members on 256 examples") {
		t.Errorf("says %s", printed)
	}
}

// OpenVINO tries plugins for all devices, and looks for them in the working directory, too. It loads none from there.
func TestOpenVINOPlanted(t *testing.T) {
	dir := t.TempDir()
	code := plantedLibrary(t)
	for _, plugin := range []string{"auto", "auto_batch", "hetero", "intel_cpu", "intel_gpu", "intel_npu", "multi", "template", "proxy"} {
		if err := os.WriteFile(filepath.Join(dir, "libopenvino_"+plugin+"_plugin.so"), code, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(executable(t, t.TempDir()), "doctor", "--provider", "openvino")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "PLANTED") || !strings.Contains(string(out), "tiny network  right") {
		t.Errorf("%v: %s", err, out)
	}
}
