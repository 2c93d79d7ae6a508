package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/reference"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights"
)

// Exit codes. They are an interface: batch schedulers use them to decide whether to retry.
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

// Crashed is the exit code of a process that Go's runtime ended. No command chooses it.
const Crashed = 2

// Retry marks err as a failure of the moment, unless it is already marked.
func Retry(err error, hints ...string) error { return mark(exitFailed, err, hints) }

// BadInput marks err as the fault of an input file, unless it is already marked.
func BadInput(err error, hints ...string) error { return mark(exitData, err, hints) }

// BadOutput marks err as a failure to write, unless it is already marked.
func BadOutput(err error, hints ...string) error { return mark(exitTemporary, err, hints) }

func mark(code int, err error, hints []string) error {
	if err == nil || is[*Failure](err) || is[*open.Error](err) {
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

// Skippable is the failure of a command with --on-error at an input that cannot be read.
type Skippable struct{ Err error }

func (s *Skippable) Error() string { return s.Err.Error() }
func (s *Skippable) Unwrap() error { return s.Err }

// Interrupted is the cause of a context that ended because of a signal.
type Interrupted struct{ Signal syscall.Signal }

func (i Interrupted) Error() string { return "stopped by signal: " + i.Signal.String() }

// GiveUp removes unfinished files and prints an error. It is for a process that a signal ends before its work has
// stopped. It returns the exit code.
func GiveUp(w io.Writer, i Interrupted) int {
	tempfile.RemoveAll()
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

// is reports whether err has an error of type E in its chain.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// ExitCode returns the exit code for an error. It is the only place that chooses exit codes.
func ExitCode(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	if sig, ok := errors.AsType[Interrupted](context.Cause(ctx)); ok {
		return exitSignal + int(sig.Signal)
	}
	f, marked := errors.AsType[*Failure](err)
	fault, opened := errors.AsType[*open.Error](err)
	switch {
	case gone(err):
		return exitSignal + int(syscall.SIGPIPE)
	case is[*file.Conflict](err):
		return exitUsage
	case is[*ort.LibraryError](err), is[*reference.Absent](err):
		return exitNoRuntime
	case is[*tempfile.TempError](err), is[*weights.ChangedError](err), is[*store.Error](err), isTemporary(err):
		return exitTemporary
	case is[*listing.PipeError](err):
		return exitFailed
	case marked:
		return f.code
	case opened:
		return codeOf(fault)
	case is[*weights.Error](err), is[*ort.MemoryError](err):
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
	errnos := []error{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT, syscall.EROFS, syscall.ENOMEM, syscall.EAGAIN, syscall.EMFILE,
		syscall.ENFILE}
	return slices.ContainsFunc(errnos, func(errno error) bool { return errors.Is(err, errno) })
}

// PrintError writes a line with the error, then a line for each hint. It prints nothing if the reader of standard
// output has gone.
func PrintError(w io.Writer, ctx context.Context, err error) {
	if gone(err) {
		return
	}
	left, next := "nothing was written", ""
	if part, ok := errors.AsType[*Unfinished](err); ok {
		left, next = part.Kept, part.Kept+": the same command with --resume goes on from there"
		if part.Plain {
			next = part.Kept + ": the same command goes on from there"
		}
	}
	var hints []string
	if sig, ok := errors.AsType[Interrupted](context.Cause(ctx)); ok {
		err = fmt.Errorf("%w: %s", sig, left)
	} else if both, ok := errors.AsType[*file.Conflict](err); ok {
		err, hints = both, []string{"choose another name for the output"}
	} else {
		hints = hintsOf(err)
	}
	say(w, "error: "+file.Named(strings.ReplaceAll(err.Error(), "\n", " ")))
	for _, h := range append(hints, Hints(next)...) {
		say(w, "hint: "+file.Named(h))
	}
}

// hintsOf returns the hints for each kind of error in the chain of err.
func hintsOf(err error) (hints []string) {
	hints = slices.Concat(
		hintOf(err, func(*tempfile.TempError) string {
			return "TMPDIR names another folder for temporary files, with more space or to write to"
		}),
		hintOf(err, func(e *weights.Error) string { return e.Hint }),
		hintOf(err, func(*ort.MemoryError) string {
			return "--memory SIZE allows more, --batch-size N and --threads N need less; a model that is not yours may be made to " +
				"exhaust memory"
		}),
		hintOf(err, func(e *ort.GPUMemoryError) string {
			less := "--batch-size N and --threads N need less; "
			if e.Batch > 0 {
				less = ""
			}
			return less + "`nvidia-smi` shows who else uses the GPU; --provider cpu needs none, and auto takes it by itself"
		}),
		hintOf(err, func(*ort.GPULostError) string {
			return "`nvidia-smi` and `dmesg` tell more of the GPU; if it is gone, --provider cpu needs none"
		}),
		hintOf(err, func(*Skippable) string {
			return "--on-error skip goes on with the others: the row of such an input says why it has no prediction, and the exit code is 3"
		}),
		hintOf(err, hinted.Hint),
		hintOf(err, func(*weights.ChangedError) string {
			return "run the command again when the file is complete; who writes it should write another one and rename that"
		}),
		hintOf(err, func(*predictions.TwoError) string {
			return "--key logits or --key probs takes one of them, or save one alone"
		}),
		hintOf(err, func(e *preprocess.SizeError) string {
			h, w := e.Want[0], e.Want[1]
			return fmt.Sprintf("--preprocess input-size=%dx%d resizes and crops; --preprocess imagenet does it as most networks for "+
				"photographs were trained. fit remembers it", h, w)
		}),
		hintOf(err, func(e *word.Unknown) string {
			if e.Meant() == "" {
				return ""
			}
			return fmt.Sprintf("did you mean %q?", e.Meant())
		}))
	if e, ok := errors.AsType[*checkpoints.MissingError](err); ok && len(e.Unused) > 0 {
		hints = append(hints, "the whole command: "+Shell(withFlag(os.Args, setting.Unused.String(), e.Unused...)...))
	}
	if errors.Is(err, syscall.EMFILE) {
		hints = append(hints, "ulimit -n 4096 lets this shell's programs open more files at once")
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		hints = append(hints, f.hints...)
	}
	if errors.As(err, new(*open.AveragesError)) {
		for _, answer := range []open.Averages{open.DropAverages, open.KeepAverages} {
			hints = append(hints, fmt.Sprintf("the whole command to %s them: %s", answer,
				Shell(withFlag(os.Args, setting.Averages.String(), string(answer))...)))
		}
	}
	return hints
}

// withFlag returns the words of a command with a flag that has several values, or with further values of it.
func withFlag(args []string, flag string, values ...string) []string {
	words, list := []string{filepath.Base(args[0])}, strings.Join(values, ",")
	for k := 1; k < len(args); k++ {
		switch value, joined := strings.CutPrefix(args[k], flag+"="); {
		case joined:
			list = value + "," + list
		case args[k] == flag && k+1 < len(args):
			k++
			list = args[k] + "," + list
		default:
			words = append(words, args[k])
		}
	}
	at := min(2, len(words)) // behind the name of the command
	return slices.Insert(words, at, flag, list)
}

// hintOf returns the lines of a hint, if err has an error of type E in its chain.
// hinted is an error that knows what to type.
type hinted interface {
	error
	Hint() string
}

func hintOf[E error](err error, hint func(E) string) []string {
	if e, ok := errors.AsType[E](err); ok {
		return Hints(hint(e))
	}
	return nil
}
