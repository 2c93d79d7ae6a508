package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/weights"
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

// newBreed takes the last two checkpoints of a folder, and images that lie there or what the golden results were computed from.
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
	x := make([]float32, values)
	if v.DType == weights.I64 {
		for i := range x {
			x[i] = float32(int64(binary.LittleEndian.Uint64(v.Data[8*i:])))
		}
	} else {
		v.Float32s(x, 0)
	}
	for _, x := range x {
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
// guarantee.
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
	defer afterCPU(mutantTime, func() { cancel(console.Interrupted{Signal: syscall.SIGTERM}) })()
	p, e, csv := b.at("out", "p.safetensors"), b.at("out", "e.safetensors"), b.at("out", "out.csv")
	var want []string
	for _, step := range []struct{ args, outputs []string }{
		{[]string{"fit", "-o", p, "--task", "classes", "--allow", "folded", models[0], models[1]}, []string{"p.safetensors"}},
		{[]string{"sample", "-o", e, "-n", "1", "-j", "1", "--bn-data", b.images, p}, []string{"e.safetensors"}},
		{[]string{"score", "-o", csv, "-j", "1", e, b.images}, []string{"out.csv", "out.csv.meta.json"}},
	} {
		var printed strings.Builder
		code := run(ctx, append([]string{"swagwrap"}, step.args...), io.Discard, &printed)
		stopped := code == 128+int(syscall.SIGTERM)
		if code == 0 {
			want = append(want, step.outputs...)
		}
		there, err := os.ReadDir(out)
		if err != nil {
			return "", err
		}
		var got []string
		for _, f := range there {
			if !stopped || f.Name() != "out.csv.partial" {
				got = append(got, f.Name())
			}
		}
		slices.Sort(want)
		switch {
		case code != 0 && code != 65 && !stopped, code == 65 && !strings.Contains(printed.String(), "error: "), !slices.Equal(got, want):
			return "", fmt.Errorf("%s: exit code %d, files %q: %s", step.args[0], code, got, &printed)
		case code != 0:
			return fmt.Sprintf("%s: %d", step.args[0], code), nil
		}
	}
	return "scored", nil
}

// afterCPU calls f once this process has used so much more processor time, unless stop is called first.
func afterCPU(limit time.Duration, f func()) (stop func()) {
	begun, done := reliability.ProcessorTime(), make(chan struct{})
	go func() {
		for ticks := time.Tick(50 * time.Millisecond); ; {
			select {
			case <-done:
				return
			case <-ticks:
			}
			if reliability.ProcessorTime()-begun >= limit {
				f()
				return
			}
		}
	}()
	return func() { close(done) }
}

func (b *breed) at(elem ...string) string { return filepath.Join(append([]string{b.dir}, elem...)...) }
