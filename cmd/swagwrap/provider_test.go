//go:build openvino || webgpu || cuda

package main

import (
	"encoding/csv"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// job runs the program on MNIST in a folder of its own, each command in a process: one
// holds one ONNX Runtime.
type job struct {
	*testing.T
	dir, program, fixtures string
}

func newJob(t *testing.T) *job {
	j := &job{t, t.TempDir(), executable(t, t.TempDir()), absolute(t, "..", "..", "fixtures", "mnist")}
	j.must("fit", "-q", "--template", j.fixtures+"/model.onnx", "--task", "classes", "--preprocess", "mean=0.1307 std=0.3081", "--augment", "none", "-o", "p.safetensors", j.fixtures+"/states")
	j.must("sample", "-q", "-n", "6", "--bn-samples", "1024", "--bn-data", j.fixtures+"/train.npz", "-o", "e.safetensors", "p.safetensors")
	return j
}

// run returns what a command says, and its exit code.
func (j *job) run(args ...string) (printed string, code int) {
	j.Helper()
	c := exec.Command(j.program, args...)
	c.Dir = j.dir
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		j.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

func (j *job) must(args ...string) string {
	j.Helper()
	printed, code := j.run(args...)
	if code != 0 {
		j.Fatalf("%q ends with %d: %s", args, code, printed)
	}
	j.Logf("%q: %s", args, printed)
	return printed
}

func (j *job) read(name string) []byte {
	j.Helper()
	b, err := os.ReadFile(filepath.Join(j.dir, name))
	if err != nil {
		j.Fatal(err)
	}
	return b
}

// probs are the columns p_0 to p_9 of a result.
func (j *job) probs(name string) (all []float64) {
	j.Helper()
	rows, err := csv.NewReader(strings.NewReader(string(j.read(name)))).ReadAll()
	if err != nil {
		j.Fatal(err)
	}
	for _, row := range rows[1:] {
		for c, column := range rows[0] {
			if strings.HasPrefix(column, "p_") {
				v, err := strconv.ParseFloat(row[c], 64)
				if err != nil {
					j.Fatal(err)
				}
				all = append(all, v)
			}
		}
	}
	return all
}

// furthest is the largest difference.
func furthest(a, b []float64) (d float64) {
	for i := range a {
		d = max(d, math.Abs(a[i]-b[i]))
	}
	return d
}
