package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/infer/infertest"
	"github.com/swagwrap/swagwrap/internal/promise"
	"github.com/swagwrap/swagwrap/weights"
)

const (
	mutantTime = 5 * time.Second  // for one, before it is told to stop; the promise is not about time
	mutantEnd  = 60 * time.Second // until a process that says nothing is killed
)

// bred are the networks that mutants come from: two checkpoints each, and images.
var bred = []string{
	"cmd/swagwrap/testdata",
	"fixtures/exporters/torch-torchscript",
	"fixtures/exporters/torch-dynamo", // external data
	"fixtures/exporters/control-flow/cond-torchscript",
	"fixtures/exporters/control-flow/ir3-inputs",
	"fixtures/exporters/transformer-tied/torchscript-folding",
	"fixtures/exporters/lstm/torchscript-default",
	"fixtures/exporters/f16/torchscript",
	"fixtures/exporters/jax2onnx/linen",
	"fixtures/exporters/encodings/double-data",
	"fixtures/exporters/keras-tf2onnx/tf-keras",
}

// TestMutants has damaged models fitted, drawn from and scored, which loads them into ONNX Runtime and runs them: each
// command ends with exit code 0, or 65 and one error, and an output is there if and only if it is 0. A crash in C++
// ends a process, so mutants run in others: the worker, this program again, says how far it is.
func TestMutants(t *testing.T) {
	n := promise.Figure(2_000, 200_000)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		ended  = map[string]int{}
		failed int
		slow   time.Duration
	)
	start := time.Now()
	processes := min(runtime.NumCPU(), 8)
	for k := range processes {
		wg.Go(func() {
			dir := t.TempDir()
			exe := filepath.Join(dir, "mutants") // by this name TestMain knows what to be
			if err := os.Symlink(self, exe); err != nil {
				t.Error(err)
				return
			}
			for next, end := k*n/processes, (k+1)*n/processes; next < end; next++ {
				died := work(exe, dir, next, end, func(i int, took time.Duration, what string) {
					mu.Lock()
					defer mu.Unlock()
					next, slow = i+1, max(slow, took)
					if kind, bad := strings.CutPrefix(what, "bad: "); bad {
						failed++
						t.Errorf("mutant %d: %s\n%s", i, kind, keepMutant(t, i))
						return
					}
					ended[what]++
				})
				if died == "" {
					return
				}
				mu.Lock()
				failed++
				t.Errorf("mutant %d: %s\n%s", next, died, keepMutant(t, next))
				stop := failed > 20
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	var table strings.Builder
	for _, what := range slices.SortedFunc(maps.Keys(ended), func(a, b string) int { return ended[b] - ended[a] }) {
		fmt.Fprintf(&table, "\n%7d %s", ended[what], what)
	}
	t.Logf("%d mutants of %d networks in %.0f s, %d bad; the slowest took %.1f s%s", n, len(bred), time.Since(start).Seconds(), failed, slow.Seconds(), &table)
	if failed == 0 && (ended["scored"] < n/20 || ended["sample: 65"] < n/20) {
		t.Errorf("few mutants reach ONNX Runtime: the test shows little")
	}
}

// keepMutant writes a mutant to a folder that stays when the test is over.
func keepMutant(t *testing.T, i int) string {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		t.Error(err)
		return ""
	}
	networks, donors, err := breeds(dir)
	if err != nil {
		t.Error(err)
		return ""
	}
	paths, err := networks[i%len(networks)].write(uint64(i), donors)
	if err != nil {
		t.Error(err)
	}
	return strings.Join(paths[:], " ")
}

// work has a process run mutants from … end-1 and calls each for those that are done. If the process dies, work says how.
func work(exe, dir string, from, end int, each func(i int, took time.Duration, what string)) (died string) {
	c := exec.Command(exe, dir, strconv.Itoa(from), strconv.Itoa(end))
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err.Error()
	}
	if err := c.Start(); err != nil {
		return err.Error()
	}
	watchdog := time.AfterFunc(mutantEnd, func() { c.Process.Signal(syscall.SIGQUIT) })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		watchdog.Reset(mutantEnd)
		var i int
		var took time.Duration
		fields := strings.SplitN(lines.Text(), "\t", 3)
		if len(fields) != 3 {
			return "says " + lines.Text()
		}
		i, _ = strconv.Atoi(fields[0])
		took, _ = time.ParseDuration(fields[1])
		each(i, took, fields[2])
	}
	watchdog.Stop()
	if err := c.Wait(); err != nil {
		said := stderr.String()
		return fmt.Sprintf("the process ends with %v: %s", err, said[:min(len(said), 2000)])
	}
	return ""
}

// mutants is the worker. Its arguments are a folder for its files, the first mutant and the one behind the last.
func mutants() {
	if err := runMutants(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runMutants(dir, first, last string) error {
	from, err1 := strconv.Atoi(first)
	end, err2 := strconv.Atoi(last)
	networks, donors, err := breeds(dir)
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	debug.SetGCPercent(400) // there is little to keep
	for i := from; i < end; i++ {
		start := time.Now()
		what, err := networks[i%len(networks)].mutant(uint64(i), donors)
		if err != nil {
			what = "bad: " + err.Error()
		}
		fmt.Printf("%d\t%v\t%s\n", i, time.Since(start), strings.ReplaceAll(what, "\n", " / "))
	}
	return nil
}

// breeds opens the networks, in a folder, and what parts of models come from.
func breeds(dir string) ([]*breed, []*field, error) {
	var networks []*breed
	var donors []*field
	for k, folder := range bred {
		b, err := newBreed(folder, filepath.Join(dir, strconv.Itoa(k)))
		if err != nil {
			return nil, nil, err
		}
		networks, donors = append(networks, b), append(donors, decodeModel(b.models[0]))
	}
	endless, err := os.ReadFile(infertest.Path("internal/ort/testdata/endless.onnx"))
	return networks, append(donors, decodeModel(endless)), err
}

// A breed is a network that mutants come from.
type breed struct {
	dir, images string
	models      [2][]byte
}

func newBreed(folder, dir string) (*breed, error) {
	b := &breed{dir: dir, images: infertest.Path(folder, "images.npz")}
	checkpoints, err := filepath.Glob(infertest.Path(folder, "ckpt-*.onnx"))
	if err != nil || len(checkpoints) < 2 {
		return nil, fmt.Errorf("%s: %d checkpoints, %v", folder, len(checkpoints), err)
	}
	for i, path := range checkpoints[len(checkpoints)-2:] {
		var err error
		if b.models[i], err = os.ReadFile(path); err != nil {
			return nil, err
		}
		in := filepath.Join(dir, strconv.Itoa(i+1))
		if err := os.MkdirAll(in, 0o777); err != nil {
			return nil, err
		}
		if data, err := os.ReadFile(path + ".data"); err == nil {
			if err := os.WriteFile(filepath.Join(in, filepath.Base(path)+".data"), data, 0o666); err != nil {
				return nil, err
			}
		}
	}
	if _, err := os.Stat(b.images); err != nil {
		b.images = filepath.Join(dir, "images.npy")
		return b, writeGoldenInput(b.images, infertest.Path(folder, "golden.safetensors"))
	}
	return b, nil
}

// writeGoldenInput writes what the framework was given as float32 in the .npy format.
func writeGoldenInput(path, golden string) error {
	st, err := weights.OpenSafetensors(golden)
	if err != nil {
		return err
	}
	defer st.Close()
	v, ok := st.View("input")
	if !ok {
		return fmt.Errorf("%s: no input", golden)
	}
	rows := min(v.Shape[0], 8)
	shape, values := []string{strconv.FormatInt(rows, 10)}, rows
	for _, d := range v.Shape[1:] {
		shape, values = append(shape, strconv.FormatInt(d, 10)), values*d
	}
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }\n", strings.Join(shape, ", "))
	b := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head)))
	b = append(b, head...)
	for i := range values {
		x := float32(0)
		if v.DType == weights.I64 {
			x = float32(int64(binary.LittleEndian.Uint64(v.Data[8*i:])))
		} else {
			one := make([]float32, 1)
			v.Float32s(one, i)
			x = one[0]
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return os.WriteFile(path, b, 0o666)
}

// write writes both checkpoints, damaged alike.
func (b *breed) write(seed uint64, donors []*field) (paths [2]string, err error) {
	for i := range paths {
		paths[i] = b.at(strconv.Itoa(i+1), "m.onnx")
		err = errors.Join(err, os.WriteFile(paths[i], newMutator(seed, donors).model(b.models[i]), 0o666))
	}
	return paths, err
}

// mutant damages both checkpoints alike, goes the whole road with them, and says how far it came. An error is a broken
// promise.
func (b *breed) mutant(seed uint64, donors []*field) (string, error) {
	models, err := b.write(seed, donors)
	if err != nil {
		return "", err
	}
	out := b.at("out")
	if err := errors.Join(os.RemoveAll(out), os.Mkdir(out, 0o777)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer time.AfterFunc(mutantTime, func() { cancel(flags.Interrupted{Signal: syscall.SIGTERM}) }).Stop()
	p, e, csv := b.at("out", "p.safetensors"), b.at("out", "e.safetensors"), b.at("out", "out.csv")
	var there []string
	for _, step := range []struct{ args, outputs []string }{
		{[]string{"fit", "-o", p, "--allow-folded", models[0], models[1]}, []string{p}},
		{[]string{"sample", "-o", e, "-n", "1", "-j", "1", "--bn-data", b.images, p}, []string{e}},
		{[]string{"score", "-o", csv, "-j", "1", e, b.images}, []string{csv, csv + ".meta.json"}},
	} {
		var said strings.Builder
		code := run(ctx, append([]string{"swagwrap"}, step.args...), io.Discard, &said)
		stopped := code == 128+int(syscall.SIGTERM)
		if code == 0 {
			there = append(there, step.outputs...)
		}
		left, err := filepath.Glob(b.at("out", "*"))
		if err != nil {
			return "", err
		}
		if hidden, _ := filepath.Glob(b.at("out", ".*")); hidden != nil {
			left = append(left, hidden...)
		}
		if stopped {
			left = slices.DeleteFunc(left, func(path string) bool { return path == csv+".partial" })
		}
		slices.Sort(there)
		slices.Sort(left)
		switch {
		case code != 0 && code != 65 && !stopped, code == 65 && strings.Count(said.String(), "error: ") == 0, !slices.Equal(left, there):
			return "", fmt.Errorf("%s: exit code %d, files %q: %s", step.args[0], code, left, &said)
		case code != 0:
			return fmt.Sprintf("%s: %d", step.args[0], code), nil
		}
	}
	return "scored", nil
}

func (b *breed) at(elem ...string) string { return filepath.Join(append([]string{b.dir}, elem...)...) }
