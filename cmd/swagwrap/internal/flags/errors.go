package flags

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// Exit codes. They are an interface: batch schedulers use them to decide whether to retry. Code 2 is reserved for
// crashes.
const (
	exitOK         = 0
	exitFailed     = 1  // may be retried
	exitIncomplete = 3  // finished, but some inputs could not be read
	exitMissing    = 4  // parts are missing; the message names them
	exitUsage      = 64 // the command line
	exitData       = 65 // a model, posterior or data set: do not retry
	exitNoRuntime  = 69 // no usable ONNX Runtime
	exitTemporary  = 75 // disk full, I/O
	exitSignal     = 128
)

// A Failure is an error with its exit code and hints.
type Failure struct {
	code  int
	err   error
	hints []string
}

func (f *Failure) Error() string { return f.err.Error() }
func (f *Failure) Unwrap() error { return f.err }

// Incomplete returns the error of a run that could not read all of its inputs.
func Incomplete(format string, args ...any) error {
	return &Failure{exitIncomplete, fmt.Errorf(format, args...), nil}
}

// Missing returns the error of a run that lacks parts from other jobs.
func Missing(hint, format string, args ...any) error {
	return &Failure{exitMissing, fmt.Errorf(format, args...), Hints(hint)}
}

// Usagef returns the error for a mistake in the command line.
func Usagef(hint, format string, args ...any) error {
	return &Failure{exitUsage, fmt.Errorf(format, args...), Hints(hint)}
}

// BadInput marks err as the fault of an input file, unless it is already marked.
func BadInput(err error, hints ...string) error { return mark(exitData, err, hints) }

// BadOutput marks err as a failure to write, unless it is already marked.
func BadOutput(err error, hints ...string) error { return mark(exitTemporary, err, hints) }

func mark(code int, err error, hints []string) error {
	var f *Failure
	if err == nil || errors.As(err, &f) {
		return err
	}
	return &Failure{code, err, hints}
}

// Unfinished is a failure that leaves work from which a later run can continue.
type Unfinished struct {
	Err  error
	Kept string // the finished work, in words
	// Plain says that the same command continues without another flag. Otherwise it needs --resume.
	Plain bool
}

func (u *Unfinished) Error() string { return u.Err.Error() }
func (u *Unfinished) Unwrap() error { return u.Err }

// Interrupted is the cause of a context that ended because of a signal.
type Interrupted struct{ Signal syscall.Signal }

func (i Interrupted) Error() string { return "stopped by signal: " + i.Signal.String() }

// GiveUp removes unfinished files and prints an error. It is for a process that a signal ends before its work has
// stopped. It returns the exit code.
func GiveUp(w io.Writer, i Interrupted) int {
	RemoveUnfinished()
	text.Line(w, "error: %v: what was under way is given up", i)
	return exitSignal + int(i.Signal)
}

// Hints returns the lines of a text.
func Hints(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// ExitCode returns the exit code for an error. It is the only place that chooses exit codes.
func ExitCode(ctx context.Context, err error) int {
	var (
		sig     Interrupted
		library *ort.LibraryError
		f       *Failure
		model   *onnxio.Error
		saved   *torch.Error
		changed *weights.ChangedError
		both    *file.Conflict
		temp    *tempfile.TempError
		memory  *ort.MemoryError
		kept    *store.Error
		pipe    *listing.PipeError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(context.Cause(ctx), &sig):
		return exitSignal + int(sig.Signal)
	case gone(err):
		return exitSignal + int(syscall.SIGPIPE)
	case errors.As(err, &both):
		return exitUsage
	case errors.As(err, &library):
		return exitNoRuntime
	case errors.As(err, &temp), errors.As(err, &changed), errors.As(err, &kept), isTemporary(err):
		return exitTemporary
	case errors.As(err, &pipe):
		return exitFailed
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &model), errors.As(err, &saved), errors.As(err, &memory):
		return exitData
	}
	return exitFailed
}

// Changed returns err. If a file changed while it was read, it returns an error about that, because the change may be
// the cause of err.
func Changed(err error) error {
	if changed := weights.Changed(); changed != nil && !errors.As(err, new(*weights.ChangedError)) {
		return fmt.Errorf("%w: %v", changed, err)
	}
	return err
}

// isTemporary reports whether the machine causes err at the moment: it lacks space, memory, threads or open files.
func isTemporary(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.EROFS, syscall.ENOMEM, syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// PrintError writes one "error:" line, then a "hint:" line for each hint. It prints nothing if the reader of standard
// output has gone.
func PrintError(w io.Writer, ctx context.Context, err error) {
	var (
		sig     Interrupted
		library *ort.LibraryError
		f       *Failure
		model   *onnxio.Error
		saved   *torch.Error
		memory  *ort.MemoryError
		part    *Unfinished
		changed *weights.ChangedError
		both    *file.Conflict
		temp    *tempfile.TempError
		unknown *word.Unknown
		size    *preprocess.SizeError
		hints   []string
	)
	if gone(err) {
		return
	}
	left := "nothing was written"
	if errors.As(err, &part) {
		left = part.Kept
	}
	if errors.As(context.Cause(ctx), &sig) {
		err = fmt.Errorf("%w: %s", sig, left)
	} else if errors.As(err, &both) {
		err, hints = both, append(hints, "choose another name for the output")
	} else {
		if errors.As(err, &temp) {
			hints = append(hints, "TMPDIR names another folder for temporary files, with more space or to write to")
		}
		if errors.As(err, &model) {
			hints = append(hints, Hints(model.Hint)...)
		}
		if errors.As(err, &saved) {
			hints = append(hints, Hints(saved.Hint)...)
		}
		if errors.As(err, &memory) {
			hints = append(hints, "--memory SIZE allows more, --batch-size N and --threads N need less; a model that is not yours may be made to exhaust memory")
		}
		if errors.Is(err, syscall.EMFILE) {
			hints = append(hints, "ulimit -n 4096 lets this shell's programs open more files at once")
		}
		if errors.As(err, &library) {
			hints = append(hints, Hints(library.Hint())...)
		}
		if errors.As(err, &changed) {
			hints = append(hints, "run the command again when the file is complete; who writes it should write another one and rename that")
		}
		if errors.As(err, &size) {
			h, w := size.Want[0], size.Want[1]
			hints = append(hints, fmt.Sprintf("for all commands, say it at fit: --input-size %dx%d resizes and crops; --preset NAME does it as the model was trained", h, w),
				fmt.Sprintf("for this command alone: --preprocess FILE, and write into FILE: {\"image\": {\"crop_mode\": \"center\", \"input_size\": [%d, %d]}}", h, w))
		}
		if errors.As(err, &unknown) && unknown.Meant() != "" {
			hints = append(hints, fmt.Sprintf("did you mean %q?", unknown.Meant()))
		}
		if errors.As(err, &f) {
			hints = append(hints, f.hints...)
		}
	}
	switch {
	case part == nil:
	case part.Plain:
		hints = append(hints, part.Kept+": the same command goes on from there")
	default:
		hints = append(hints, part.Kept+": the same command with --resume goes on from there")
	}
	text.Line(w, "error: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	for _, h := range hints {
		text.Line(w, "hint: %s", h)
	}
}
