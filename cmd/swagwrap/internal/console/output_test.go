package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/tempfile"
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

// What is there and no regular file stays as it is, with --force too: also where it
// appears while the result is written.
func TestOutputRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := errors.Join(syscall.Mkfifo(at("pipe"), 0o666), os.WriteFile(at("file"), []byte("precious"), 0o666),
		os.Symlink("file", at("link")), os.Symlink("gone", at("dangling")), os.Symlink("pipe", at("through")), os.Mkdir(at("folder"), 0o777)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"pipe":     "hint: -o - writes to standard output",
		"through":  "hint: -o - writes to standard output", // as /dev/fd/63 is of a shell's >(command)
		"socket":   "error: " + at("socket") + ": is a device, a pipe or a socket, want a regular file",
		"link":     "hint: name the file itself: " + at("file"),
		"dangling": "hint: name the file itself: gone",
		"folder":   "hint: name a file in it",
	} {
		before, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		_, atOnce := CreateOutput(at(name), true)
		out, err := CreateOutput(at("late"), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(at(name), at("late")); err != nil {
			t.Fatal(err)
		}
		late := out.Commit()
		after, err := os.Lstat(at("late"))
		if err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() {
			t.Errorf("%s: another file now: %v", name, err)
		}
		if err := os.Rename(at("late"), at(name)); err != nil {
			t.Fatal(err)
		}
		var printed strings.Builder
		PrintError(&printed, t.Context(), atOnce)
		if ExitCode(t.Context(), atOnce) != exitUsage || ExitCode(t.Context(), late) != exitUsage || !strings.Contains(printed.String(), want) {
			t.Errorf("%s: %v and %v, want %q", name, atOnce, late, want)
		}
	}
	if b, err := os.ReadFile(at("file")); string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
	if left, _ := filepath.Glob(at(".swagwrap*")); left != nil {
		t.Errorf("left behind: %q", left)
	}
}

// An input that is opened late is no output either, and two outputs are not one.
func TestOutputConflicts(t *testing.T) {
	t.Cleanup(file.Forget)
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("precious"), 0o666); err != nil {
		t.Fatal(err)
	}
	create := func() (*Output, error) { return CreateCompanion(path, true, func(string) bool { return true }) }
	out, err := create()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := create(); ExitCode(t.Context(), err) != exitUsage {
		t.Errorf("twice: %v", err)
	}
	if err := file.Input(path); ExitCode(t.Context(), BadInput(err)) != exitUsage {
		t.Errorf("an output as input: %v", err)
	}
	if err := out.Commit(); ExitCode(t.Context(), err) != exitUsage {
		t.Errorf("an input as output: %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

// No result that is not text goes to a terminal, and one that cannot be written to
// standard output fails.
func TestResultToStdout(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	if terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err == nil { // a machine without one has no terminals
		defer terminal.Close()
		a := &Env{Stdout: NewStdout(terminal)}
		if _, err := a.CreateResult("-", false, false); ExitCode(t.Context(), err) != exitUsage {
			t.Errorf("binary: %v", err)
		}
		out, err := a.CreateResult("-", false, true)
		if err != nil {
			t.Fatal(err)
		}
		out.Abort()
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	var written bytes.Buffer
	for _, to := range []io.Writer{w, &written} {
		out, err := (&Env{Stdout: NewStdout(to)}).CreateResult("/dev/stdout", false, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte("result")); err != nil {
			t.Fatal(err)
		}
		if err := out.Commit(); (to == w) != (ExitCode(t.Context(), err) == exitSignal+int(syscall.SIGPIPE)) {
			t.Errorf("%T: %v", to, err)
		}
	}
	if left, err := os.ReadDir(temp); written.String() != "result" || err != nil || len(left) > 0 {
		t.Errorf("%q written, %v left, %v", written.String(), left, err)
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
		{t.Context(), BadInput(fmt.Errorf("m: %w", tempfile.Temp(&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}))), 75, "hint: TMPDIR names another folder"},
		{t.Context(), BadInput(fmt.Errorf("m: %w", &file.Conflict{Path: "out"})), 64, "error: out: is an input of this command too\nhint: choose another name"},
		{t.Context(), &ort.LibraryError{Path: "lib.so", Err: errors.New("gone")}, 69, "lib.so"},
		{t.Context(), BadInput(fmt.Errorf("out: %w", syscall.ENOSPC)), 75, "no space left"},
		{stopped, errors.New("cut off"), 143, "error: stopped by signal: terminated: nothing was written\n"},
		{stopped, &Unfinished{Err: errors.New("cut off"), Kept: "out.partial keeps 2 rows"}, 143, "terminated: out.partial keeps 2 rows\nhint: out.partial keeps 2 rows: the same command with --resume"},
		{stopped, &Unfinished{Err: errors.New("cut off"), Kept: "part.partial keeps 2 rows", Plain: true}, 143, "hint: part.partial keeps 2 rows: the same command goes on"},
		{t.Context(), BadOutput(fmt.Errorf("standard output: %w", syscall.EPIPE)), 141, ""},
		{t.Context(), Missing("run it again", "1 part missing"), 4, "error: 1 part missing\nhint: run it again\n"},
	} {
		if got := ExitCode(tc.ctx, tc.err); got != tc.code {
			t.Errorf("%v: exit code %d, want %d", tc.err, got, tc.code)
		}
		if tc.err == nil {
			continue
		}
		var printed strings.Builder
		PrintError(&printed, tc.ctx, tc.err)
		if !strings.Contains(printed.String(), tc.says) {
			t.Errorf("%q, want %q", printed.String(), tc.says)
		}
	}
}
