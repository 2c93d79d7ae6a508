package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/swagwrap/swagwrap/internal/ort"
)

// executable makes the program that this test is, in dir.
func executable(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "swagwrap") // by this name TestMain knows what to be
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// peakFile is the variable with the name of a file, into which the program writes the
// most memory that it had, in bytes. What a parent is told of a child is no less than
// what the parent itself had when it began it.
const peakFile = "SWAGWRAP_TEST_PEAK"

// faultVariable names the signal that ends a process which runs an exported model for export, as a fault inside ONNX Runtime does.
const faultVariable = "SWAGWRAP_TEST_FAULT"

// simulatedGPU names the variable that gives a process a GPU, as JSON of [ort.Simulation]: --provider cuda runs on it.
const simulatedGPU = "SWAGWRAP_TEST_GPU"

// watchedMain is main in a process that the tests begin.
func watchedMain() {
	if how := os.Getenv(simulatedGPU); how != "" {
		gpu := &ort.Simulation{}
		if err := json.Unmarshal([]byte(how), gpu); err != nil {
			panic(err)
		}
		ort.SimulateGPU(gpu)
	}
	program := func(ctx context.Context) int { return run(ctx, os.Args, os.Stdout, os.Stderr) }
	if len(os.Args) > 1 && os.Args[1] == outputsName { // the process that began it is watched
		if signal := unix.SignalNum(os.Getenv(faultVariable)); signal != 0 {
			syscall.Kill(os.Getpid(), signal)
			syscall.Pause()
		}
		os.Exit(withSignals(program))
	}
	code := withSignals(watchSteps(program))
	if path := os.Getenv(peakFile); path != "" {
		os.WriteFile(path, strconv.AppendInt(nil, peakMemory(), 10), 0o666)
	}
	os.Exit(code)
}

// measured runs the program, and returns what it says and the most memory it had.
func measured(t *testing.T, c *exec.Cmd) (printed string, peak int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "peak")
	c.Env = append(c.Environ(), twoCores, peakFile+"="+path)
	out, _ := c.CombinedOutput()
	b, err := os.ReadFile(path)
	if err == nil {
		peak, err = strconv.ParseInt(string(b), 10, 64)
	}
	if err != nil || peak < 1<<20 {
		t.Errorf("%q does not tell its memory: %v, %s", c.Args, err, out)
	}
	return string(out), peak
}
