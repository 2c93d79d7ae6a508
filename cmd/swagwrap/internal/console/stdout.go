package console

import (
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/vbauerster/mpb/v8/cwriter"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/stdio"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/report/text"
)

// Stdout is standard output. It remembers the first failed write, so that a command with lost output does not exit with
// 0.
//
// Control characters are removed from output to a terminal, because names in files may contain any. Files and pipes get
// every byte.
type Stdout struct {
	to       io.Writer
	out      io.Writer // to, or what removes control characters before
	err      error
	terminal bool
}

// NewStdout returns a Stdout that writes to w.
func NewStdout(w io.Writer) *Stdout {
	s := &Stdout{to: w, out: w, terminal: isTerminal(w)}
	if s.terminal {
		s.out = transform.NewWriter(w, runes.Map(text.Screen))
	}
	return s
}

// Ready fails if standard output is closed. Commands that print at their end call it first.
func (s *Stdout) Ready() error {
	if s.to == io.Writer(os.Stdout) && stdio.Closed() {
		return BadOutput(errors.New("standard output is closed: what this command prints would be lost"),
			"send it to a file: swagwrap … > FILE, or > /dev/null")
	}
	return nil
}

func (s *Stdout) Write(b []byte) (int, error) {
	if s.err == nil {
		s.err = s.Ready()
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.out.Write(b)
	s.err = BadOutput(file.Error("standard output", err))
	return n, s.err
}

// Terminal reports whether standard output is a terminal.
func (s *Stdout) Terminal() bool { return s.terminal }

// pipeWidth is the width for files and pipes, in columns.
const pipeWidth = 120

// widthOf returns $COLUMNS, or else the width of the terminal, in columns.
func widthOf(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if n, _, err := cwriter.New(w).GetTermSize(); err == nil && n > 0 {
		return n
	}
	return pipeWidth
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && cwriter.IsTerminal(int(f.Fd()))
}

// Outcome returns the final error of a command: err, or the failed write if err is not a failure.
func (s *Stdout) Outcome(err error) error {
	if f := (*Failure)(nil); err == nil || errors.As(err, &f) && f.code == exitIncomplete && s.err != nil {
		return s.err
	}
	return err
}

// gone reports whether the reader of standard output has closed the pipe, as head does after ten lines. This is not a
// failure. The command ends without a message, like a program that SIGPIPE ends.
func gone(err error) bool { return errors.Is(err, syscall.EPIPE) }
