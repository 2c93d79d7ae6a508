package ort

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/step"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

// temporary makes the folder for temporary files an empty one, and checks that
// it is left empty.
func temporary(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() { checkEmpty(t, dir) })
	return dir
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// table opens table.onnx, whose data file has the given values in row k of its
// table, a hole in the file around them.
func table(t *testing.T, k int64, values []float32) *onnxio.Model {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "data", "table.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	row := make([]byte, 4*72)
	weights.F32.PutFloat32s(row, values)
	_, err = f.WriteAt(row, 8192+k*int64(len(row)))
	if err := errors.Join(err, f.Truncate(8192+int64(len(row))<<18), os.WriteFile(filepath.Join(dir, "table.onnx"), read(t, "table.onnx"), 0o644)); err != nil {
		t.Fatal(err)
	}
	m, err := onnxio.Open(filepath.Join(dir, "table.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func counted(n int, from float32) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = from + float32(i)
	}
	return out
}

// A large model is run from a folder that is gone before the first run, with its
// own weights and with others.
func TestFilledSession(t *testing.T) {
	const last = 1<<18 - 1
	temp := temporary(t)
	m := table(t, last, counted(72, 1))
	set, err := checkpoints.New([]*onnxio.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	l := set.Layout
	own, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := onnxio.NewRuntimeTemplate(m, l)
	if err != nil {
		t.Fatal(err)
	}
	other, err := tpl.Fill(l, weights.Slice(counted(72<<18, 0)), weights.Slice{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(own.Template.Files()); n != 2 {
		t.Fatalf("%d files, want the model and its data", n)
	}
	rows := Tensor{Shape: []int64{2}, I64: []int64{last, 1}}
	for name, c := range map[string]struct {
		model onnxio.Filled
		want  []float32
	}{
		"own weights":   {own, append(counted(72, 1), make([]float32, 72)...)},
		"other weights": {other, append(counted(72<<18, 0)[last*72:], counted(72, 72)...)},
	} {
		s, err := rt.NewFilledSession(t.Context(), c.model, Options{Threads: 1})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkEmpty(t, temp)
		if got := run(t, s, rows)[0].F32; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A small model runs from memory, its external data included.
func TestSmallFilledSession(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	m, err := onnxio.Open("testdata/external.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	model, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.NewFilledSession(t.Context(), model, Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := run(t, s, Tensor{Shape: []int64{1, 3}, F32: []float32{1, 1, 1}})[0].F32; !reflect.DeepEqual(got, []float32{19, 32}) {
		t.Errorf("got %v", got)
	}
}

// A model of medium size runs from files. Without room for them it runs from memory, with the same results.
func TestFilledSessionWithoutRoom(t *testing.T) {
	m, err := onnxio.Open("../../fixtures/cifar/checkpoints/model.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	model, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { free = tempfile.Free }()
	input := Tensor{Shape: []int64{2, 3, 32, 32}, F32: counted(2*3*32*32, -3000)}
	var want []float32
	for _, c := range []struct {
		name string
		free int64
		dir  string
		made bool // files
	}{
		{"room", 1 << 40, "", true},
		{"no room", model.Template.Size(), "", false},
		{"no folder", 1 << 40, "missing", false},
	} {
		temp := temporary(t)
		t.Setenv("TMPDIR", filepath.Join(temp, c.dir))
		free = func() int64 { return c.free }
		made := false
		step.Reached = func(name string) { made = made || name == step.Made }
		s, err := rt.NewFilledSession(t.Context(), model, Options{Threads: 1})
		step.Reached = func(string) {}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		checkEmpty(t, temp)
		got := run(t, s, input)[0].F32
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) || made != c.made {
			t.Errorf("%s: %v, want %v; files: %v", c.name, got, want, made)
		}
		s.Close()
	}
}

type failing struct {
	weights.Slice
	after int64
	err   error
}

func (f failing) ReadAt(dst []float32, off int64) error {
	if off >= f.after {
		return f.err
	}
	return nil
}

// Whatever goes wrong, no copy of the model stays behind.
func TestFilledSessionFails(t *testing.T) {
	temp := temporary(t)
	m := table(t, 0, make([]float32, 72))
	set, err := checkpoints.New([]*onnxio.Model{m})
	if err != nil {
		t.Fatal(err)
	}
	l := set.Layout
	tpl, err := onnxio.NewRuntimeTemplate(m, l)
	if err != nil {
		t.Fatal(err)
	}
	parameters := make(weights.Slice, 72<<18)
	broken := errors.New("broken")
	cancelled, cancel := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		ctx        context.Context
		parameters weights.Vector
		opts       Options
		want       error  // or
		text       string // in the message
	}{
		"unreadable weights": {t.Context(), failing{parameters, 1 << 22, broken}, Options{}, broken, "temporary copy of a model of 75"},
		"cancelled":          {cancelled, cancelling{parameters, cancel}, Options{}, context.Canceled, ""},
		"refused":            {t.Context(), parameters, Options{Outputs: []string{"z"}}, nil, `no output "z"`},
	} {
		model, err := tpl.Fill(l, c.parameters, weights.Slice{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := rt.NewFilledSession(c.ctx, model, c.opts)
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", name)
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %v, %q", name, err, c.want, c.text)
		}
		checkEmpty(t, temp)
	}
	t.Setenv("TMPDIR", filepath.Join(temp, "missing"))
	model, err := m.Runtime()
	if err != nil {
		t.Fatal(err)
	}
	_, err = rt.NewFilledSession(t.Context(), model, Options{})
	if _, ok := errors.AsType[*tempfile.TempError](err); !ok || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a folder for temporary files: %v", err)
	}
}

// cancelling ends a context when it is read.
type cancelling struct {
	weights.Slice
	cancel func()
}

func (c cancelling) ReadAt([]float32, int64) error {
	c.cancel()
	return nil
}
