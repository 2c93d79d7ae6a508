package listing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A spool runs each command once while examples are read in order by several at once,
// and again when it comes back to one that it has dropped.
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	s := newSpool(context.Background())
	command := func(tar int) string { return fmt.Sprintf("echo >> %s/ran-%d; echo tar %d", dir, tar, tar) }
	read := func(tar int) {
		f, release, err := s.open(command(tar), 6)
		if err != nil {
			t.Error(err)
			return
		}
		defer release()
		var b [6]byte
		if _, err := f.ReadAt(b[:], 0); err != nil || string(b[:]) != fmt.Sprintf("tar %d\n", tar) {
			t.Errorf("tar %d: %q, %v", tar, b, err)
		}
	}
	for from := 0; from < 5*40; from += 40 { // no reader is further ahead of another than these
		var g sync.WaitGroup
		for k := range 4 {
			g.Go(func() {
				for i := from + k; i < from+40; i += 4 {
					read(min((i+20)/40, 4))
				}
			})
		}
		g.Wait()
	}
	read(0)
	for tar, want := range []int{2, 1, 1, 1, 1} {
		if b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint("ran-", tar))); len(b) != want {
			t.Errorf("tar %d was written %d times, want %d", tar, len(b), want)
		}
	}
	if len(s.kept) > spooledMost {
		t.Errorf("%d tars are kept", len(s.kept))
	}
	for range 2 { // a command that failed is tried again
		if _, _, err := s.open("echo first >&2; echo last words >&2; exit 3", 6); !errors.As(err, new(*PipeError)) || !strings.HasSuffix(err.Error(), "exit status 3: last words") {
			t.Errorf("%v, want the exit status and the last line", err)
		}
	}
}

// All of a pipeline ends with the context, and leaves nothing.
func TestSpoolEnds(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	alive := filepath.Join(t.TempDir(), "alive") // each process of the pipeline has it open
	if err := syscall.Mkfifo(alive, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		f, err := os.Open(alive) // waits for the pipeline
		cancel()
		if err == nil {
			_, err = io.Copy(io.Discard, f) // waits for the end of its last process
		}
		ended <- err
	}()
	_, _, err := newSpool(ctx).open("exec 3>'"+alive+"'; sleep 10000 | cat", -1)
	if err == nil || ctx.Err() == nil {
		t.Fatalf("%v, the context: %v", err, ctx.Err())
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
