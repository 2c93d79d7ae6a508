package listing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// PipeError is the error for a command that did not write its tar. Another run may succeed.
type PipeError struct{ Err error }

func (e *PipeError) Error() string { return e.Err.Error() }
func (e *PipeError) Unwrap() error { return e.Err }

// spool keeps the output of the most recent commands in files without names. Examples are read in order, so each
// command runs once.
type spool struct {
	ctx context.Context // ends the commands

	mu   sync.Mutex
	free sync.Cond
	kept []*spooled // the most recent is last
}

// spooledMost is the largest number of tars at once: the one being read, and the next.
const spooledMost = 2

type spooled struct {
	command string
	users   int
	ready   chan struct{} // closed when file or err is set
	file    *os.File
	err     error
}

func newSpool(ctx context.Context) *spool {
	s := &spool{ctx: ctx}
	s.free.L = &s.mu
	return s
}

// open returns the output of a command, which must have the given size. The caller must call release.
func (s *spool) open(command string, size int64) (f *os.File, release func(), err error) {
	t, first := s.take(command)
	if first {
		if t.file, _, t.err = fetch(s.ctx, command, size); t.err != nil {
			s.mu.Lock()
			s.kept = slices.DeleteFunc(s.kept, func(o *spooled) bool { return o == t })
			s.free.Broadcast()
			s.mu.Unlock()
		}
		close(t.ready)
	}
	<-t.ready
	return t.file, func() {
		s.mu.Lock()
		t.users--
		s.free.Broadcast()
		s.mu.Unlock()
	}, t.err
}

// take returns the entry for the output of a command. first is true for the caller that must run the command.
func (s *spool) take(command string) (t *spooled, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if i := slices.IndexFunc(s.kept, func(t *spooled) bool { return t.command == command }); i >= 0 {
			t = s.kept[i]
			t.users++
			return t, false
		}
		idle := slices.IndexFunc(s.kept, func(t *spooled) bool { return t.users == 0 })
		if len(s.kept) >= spooledMost && idle >= 0 {
			s.kept[idle].file.Close()
			s.kept = slices.Delete(s.kept, idle, idle+1)
		}
		if len(s.kept) < spooledMost {
			t = &spooled{command: command, users: 1, ready: make(chan struct{})}
			s.kept = append(s.kept, t)
			return t, true
		}
		s.free.Wait()
	}
}

// fetch runs a command, and stores its output in a temporary file. The file vanishes when it is closed or the process
// ends. want is the size of the output. If it is negative, any size is right.
func fetch(ctx context.Context, command string, want int64) (f *os.File, size int64, err error) {
	if f, err = tempfile.Nameless(os.TempDir()); err != nil {
		return nil, 0, tempfile.Temp(err)
	}
	if size, err = run(ctx, command, want, f); err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

func run(ctx context.Context, command string, want int64, to *os.File) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	// A process group of its own lets the whole pipeline be killed.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 10 * time.Second // for the end of its messages; a busy machine may be late to read them
	var stderr tail
	c.Stderr = &stderr
	out, err := c.StdoutPipe() // not the file itself, so a command ends when its reader is gone
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return 0, &PipeError{err}
	}
	var from io.Reader = out
	if want >= 0 {
		from = io.LimitReader(out, want+1)
	}
	size, err := io.Copy(to, from)
	if err != nil || want >= 0 && size > want {
		cancel()
	}
	ended := c.Wait()
	switch {
	case err != nil && ended == nil, errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return 0, tempfile.Temp(err)
	case want >= 0 && size > want:
		return 0, &PipeError{fmt.Errorf("the command gives more than the %d bytes that the listing says", want)}
	case ended != nil:
		return 0, &PipeError{fmt.Errorf("the command failed: %w%s", ended, stderr.last())}
	case want >= 0 && size != want:
		return 0, &PipeError{fmt.Errorf("the command gives %d bytes, and the listing says %d%s", size, want, stderr.last())}
	}
	return size, nil
}

// tail keeps the end of the written data.
type tail struct{ end []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 1 << 10
	t.end = append(t.end, p...)
	t.end = t.end[max(0, len(t.end)-most):]
	return len(p), nil
}

// last returns a colon and the last line, or "" if there is none.
func (t *tail) last() string {
	lines := bytes.Split(bytes.TrimSpace(t.end), []byte("\n"))
	line := strings.ToValidUTF8(string(lines[len(lines)-1]), "?")
	if line == "" {
		return ""
	}
	return ": " + line
}
