package flags

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
)

// A file that appears meanwhile is not overwritten.
func TestOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	out, err := CreateOutput(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("theirs"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := out.Commit(); err == nil || !strings.Contains(err.Error(), "out: appeared while this command ran") {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "theirs" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := out.Write([]byte("x")); err == nil || !strings.HasPrefix(err.Error(), path+": ") || ExitCode(t.Context(), err) != exitTemporary {
		t.Errorf("a closed file: %v", err)
	}
	if err := out.named(errors.New("other")); err.Error() != "other" {
		t.Errorf("%v", err)
	}
}

func TestRelativeTo(t *testing.T) {
	for _, tc := range [][3]string{{"a/b/p", "a/c/ckpt", "../c/ckpt"}, {"p", "ckpt", "ckpt"}} {
		if got := RelativeTo(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%s seen from %s: %s, want %s", tc[1], tc[0], got, tc[2])
		}
	}
}

// Exit codes are an interface.
func TestExitCode(t *testing.T) {
	stopped, stop := context.WithCancelCause(t.Context())
	stop(Interrupted{Signal: syscall.SIGTERM})
	for _, tc := range []struct {
		ctx  context.Context
		err  error
		code int
		says string
	}{
		{t.Context(), nil, 0, ""},
		{t.Context(), errors.New("why"), 1, "error: why\n"},
		{t.Context(), Incomplete("%d rows", 3), 3, "error: 3 rows\n"},
		{t.Context(), Usagef("do so\nor so", "two\nlines"), 64, "error: two lines\nhint: do so\nhint: or so\n"},
		{t.Context(), BadInput(errors.New("bad"), "mend it"), 65, "error: bad\nhint: mend it\n"},
		{t.Context(), BadOutput(BadInput(errors.New("marked already"))), 65, "error: marked already\n"},
		{t.Context(), &onnxio.Error{Path: "m.onnx", Err: errors.New("is none"), Hint: "export it"}, 65, "hint: export it\n"},
		{t.Context(), &ort.LibraryError{Path: "lib.so", Err: errors.New("gone")}, 69, "lib.so"},
		{t.Context(), BadInput(fmt.Errorf("out: %w", syscall.ENOSPC)), 75, "no space left"},
		{stopped, errors.New("cut off"), 143, "error: stopped by signal: terminated: nothing was written\n"},
		{stopped, &Unfinished{errors.New("cut off"), "out.partial keeps 2 rows"}, 143, "terminated: out.partial keeps 2 rows\nhint: out.partial keeps 2 rows: the same command with --resume"},
	} {
		if got := ExitCode(tc.ctx, tc.err); got != tc.code {
			t.Errorf("%v: exit code %d, want %d", tc.err, got, tc.code)
		}
		if tc.err == nil {
			continue
		}
		var said strings.Builder
		PrintError(&said, tc.ctx, tc.err)
		if !strings.Contains(said.String(), tc.says) {
			t.Errorf("%q, want %q", said.String(), tc.says)
		}
	}
}
