package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
)

// Exit codes. They are an interface: batch schedulers decide by them whether
// to retry. Code 2 is left to crashes.
const (
	exitOK         = 0
	exitFailed     = 1  // may be retried
	exitIncomplete = 3  // finished, but some inputs could not be read
	exitUsage      = 64 // the command line
	exitData       = 65 // a model, posterior or data set: do not retry
	exitNoRuntime  = 69 // no usable ONNX Runtime
	exitTemporary  = 75 // disk full, I/O
	exitSignal     = 128
)

// A failure is an error with its exit code and the way out.
type failure struct {
	code  int
	err   error
	hints []string
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usagef is a mistake in the command line.
func usagef(hint, format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...), lines(hint)}
}

// badInput marks err as the fault of an input file, if it is not marked already.
func badInput(err error, hints ...string) error { return mark(exitData, err, hints) }

// badOutput marks err as a failure to write, if it is not marked already.
func badOutput(err error, hints ...string) error { return mark(exitTemporary, err, hints) }

func mark(code int, err error, hints []string) error {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &failure{code, err, hints}
}

// unfinished is a failure that leaves something to go on with.
type unfinished struct {
	err  error
	kept string // in words
}

func (u *unfinished) Error() string { return u.err.Error() }
func (u *unfinished) Unwrap() error { return u.err }

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// exitCode is the one place where errors become exit codes.
func exitCode(ctx context.Context, err error) int {
	var (
		sig     interrupted
		library *ort.LibraryError
		f       *failure
		model   *onnxio.Error
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(context.Cause(ctx), &sig):
		return exitSignal + int(sig.signal)
	case errors.As(err, &library):
		return exitNoRuntime
	case isDiskTrouble(err):
		return exitTemporary
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &model):
		return exitData
	}
	return exitFailed
}

func isDiskTrouble(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// printError writes one "error:" line, then a "hint:" line for each way out.
func printError(w io.Writer, ctx context.Context, err error) {
	var (
		sig     interrupted
		library *ort.LibraryError
		f       *failure
		model   *onnxio.Error
		part    *unfinished
		hints   []string
	)
	left := "nothing was written"
	if errors.As(err, &part) {
		left = part.kept
	}
	if errors.As(context.Cause(ctx), &sig) {
		err = fmt.Errorf("%w: %s", sig, left)
	} else {
		if errors.As(err, &model) {
			hints = append(hints, lines(model.Hint)...)
		}
		if errors.As(err, &library) {
			hints = append(hints, lines(library.Hint())...)
		}
		if errors.As(err, &f) {
			hints = append(hints, f.hints...)
		}
	}
	if part != nil {
		hints = append(hints, part.kept+": the same command with --resume goes on from there")
	}
	fmt.Fprintf(w, "error: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
	for _, h := range hints {
		fmt.Fprintf(w, "hint: %s\n", h)
	}
}
