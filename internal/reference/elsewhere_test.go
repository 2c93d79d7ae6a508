package reference

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
)

// standIn is a runtime whose program is a script of the shell.
func standIn(t *testing.T, script string) *Runtime {
	t.Helper()
	path := filepath.Join(t.TempDir(), "interpreter")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Runtime{Name: "stand-in", program: "run.py", command: []string{path}}
}

// A file may have any name that the system takes, and a value any name of a graph.
func TestRequest(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "tab\tline\nend\\x00")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	model := &onnxio.Model{Path: filepath.Join(folder, "a\tb\n.onnx"), Graph: &onnxio.Graph{
		Inputs:  []onnxio.Value{{Name: "in\tput\n", ElemType: onnxio.Float, Shape: []int64{-1, 2}}},
		Outputs: []onnxio.Value{{Name: "other"}, {Name: "out\nput"}},
	}}
	s := &otherSession{Runtime: standIn(t, `cp "$2" "$2.seen" && printf '01234567' >"$(dirname "$2")/output-0"; echo 7.0`), Place: Place{folder, time.Hour},
		model: model, names: []string{"out\nput"}}
	got, err := s.Run(t.Context(), []ort.Tensor{{Shape: []int64{1, 2}, F32: []float32{1, 2}}})
	if err != nil || len(got) != 1 || len(got[0].F64) != 1 || s.version != "7.0" {
		t.Fatalf("%v, %v, version %q", got, err, s.version)
	}
	seen, err := os.ReadFile(filepath.Join(folder, "request.seen"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"model", model.Path, "", "", "", "input", "in\tput\n", "float32", "1,2", filepath.Join(folder, "input-0"),
		"output", "out\nput", "1", filepath.Join(folder, "output-0"), "", ""}
	if got := string(seen); got != strings.Join(want, "\x00") {
		t.Errorf("%q", got)
	}
}

// A runtime that hangs ends with all processes that it began: after its time, and when the command is interrupted.
func TestEnd(t *testing.T) {
	for _, tt := range []struct {
		name     string
		patience time.Duration
		ends     func(error) bool
	}{
		{"late", 100 * time.Millisecond, func(err error) bool { return errors.As(err, new(*Late)) }},
		{"interrupted", time.Hour, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo") // the processes have it open until they end
			if err := syscall.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			s := &otherSession{Runtime: standIn(t, "exec 9>"+fifo+"\necho begun >&9\nsleep 99999 &\nsleep 99999\n"), Place: Place{t.TempDir(), tt.patience}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error)
			command, err := s.start(s.Folder)
			if err != nil {
				t.Fatal(err)
			}
			r, err := os.OpenFile(fifo, os.O_RDWR, 0) // the other side may never come
			if err != nil {
				t.Fatal(err)
			}
			go func() { ended <- s.finish(ctx, command) }()
			if tt.patience == time.Hour {
				io.ReadFull(r, make([]byte, len("begun\n")))
				cancel()
			}
			if err := <-ended; !tt.ends(err) {
				t.Errorf("ends with %v", err)
			}
			w, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			io.ReadAll(w) // ends with the last process
		})
	}
}
