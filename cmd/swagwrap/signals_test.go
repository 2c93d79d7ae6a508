package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/fixtures/promise"
)

// TestSignals stops commands by the signals of schedulers at random points: each
// ends within ten seconds, with the signal's exit code, and leaves no file behind but
// those that --resume goes on from.
func TestSignals(t *testing.T) {
	points := promise.Figure(1, 100)
	v := newVictim(t)
	mnist := fewImages(t, absolute(t, "..", "..", "fixtures", "mnist"), 100)
	checkpoints, err := filepath.Glob(filepath.Join(mnist, "checkpoints", "*.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	train := []string{"--bn-data", filepath.Join(mnist, "train.npz"), "--bn-samples", "256"}
	out := v.at("signals")
	r := rand.New(rand.NewPCG(1, 1))
	for _, args := range [][]string{
		append([]string{"fit", "-q", "--task", "classes", "-o", filepath.Join(out, "p.safetensors")}, checkpoints...),
		append(append([]string{"sample", "-q", "-n", "10", "-o", filepath.Join(out, "e.safetensors")}, train...), v.at("p.safetensors")),
		{"score", "-q", "-b", "32", "--memory", "500K", "-o", filepath.Join(out, "o.csv"), v.at("e.safetensors"), filepath.Join(mnist, "val.npz")},
		append(append([]string{"compare", "-q", "-n", "2", "--report", filepath.Join(out, "r.html")}, train...), v.at("p.safetensors"), filepath.Join(mnist, "val.npz")),
		append(append([]string{"export", "-q", "-o", filepath.Join(out, "swa.onnx")}, train...), v.at("p.safetensors")),
		{"export", "-q", "-o", filepath.Join(out, "e.onnx"), "--storage", "external", "--check", filepath.Join(mnist, "val.npz"), v.at("e.safetensors")},
	} {
		start := time.Now()
		if _, _, code := strike(t, v, out, args, 0, time.Hour); code != 0 {
			t.Fatalf("%s: exit code %d", args[0], code)
		}
		whole := time.Since(start)
		var worst time.Duration
		struck := 0
		for k := range points {
			signal := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1}[(k+len(args))%3]
			took, said, code := strike(t, v, out, args, signal, time.Duration(0.8*r.Float64()*float64(whole)))
			switch {
			case code == 128+int(signal) && strings.HasPrefix(said, "error: stopped by signal: "):
				struck++
			case code != 0 && code != -1: // -1: before the program had begun
				t.Errorf("%s, %v: exit code %d: %s", args[0], signal, code, said)
			}
			worst = max(worst, took)
		}
		t.Logf("%s: %d of %d signals in runs of %v; the longest took %v", args[0], struck, points, whole, worst)
		if worst > 10*time.Second {
			t.Errorf("%s: ended %v after a signal", args[0], worst)
		}
	}
}

// strike runs a command in an empty folder out and signals it after a time. It
// returns how long the command took from then on.
func strike(t *testing.T, v *victim, out string, args []string, signal syscall.Signal, after time.Duration) (took time.Duration, said string, code int) {
	t.Helper()
	temp := filepath.Join(out, "tmp")
	if err := os.MkdirAll(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(out)
	c := exec.Command(v.at("swagwrap"), args...)
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	struck := make(chan time.Time, 1)
	timer := time.AfterFunc(after, func() { struck <- time.Now(); c.Process.Signal(signal) })
	c.Wait()
	code = c.ProcessState.ExitCode()
	if !timer.Stop() {
		took = time.Since(<-struck)
	}
	if code != 0 {
		left, err := filepath.Glob(filepath.Join(out, ".*"))
		models, _ := filepath.Glob(filepath.Join(out, "*.onnx*")) // that were written already, and checked
		left = append(left, models...)
		inTemp, err2 := os.ReadDir(temp)
		if err != nil || err2 != nil || len(left)+len(inTemp) > 0 {
			t.Errorf("%s, %v: left behind %v %v", args[0], signal, left, inTemp)
		}
	}
	return took, stderr.String(), code
}

func absolute(t *testing.T, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}
