// Package open turns options into opened things: posteriors and their networks, data, the engine, the inputs of a fit and
// of a study. It checks them, and reports what it finds. The rules that several commands share are here.
//
// Options are values. The package knows no flags and no terminal: a [Reporter] tells a person what is found.
package open

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/store"
)

// An Opener opens files for one run of the program.
type Opener struct {
	Reporter
	// Findings opens the store of findings about posteriors and their data. It may be nil, or return nil: then nothing is stored.
	Findings func() *store.Store
	// Computes is what a fit computes with. If another step of the process follows, it is the runtime of that: a process holds one.
	Computes RuntimeOptions
	// Sideways counts the pictures whose orientation nobody chose to apply, over all data of the run.
	Sideways dataset.Sideways
}

// A Reporter shows a person the findings, and the progress of the work.
type Reporter interface {
	// Logf prints a message about the work.
	Logf(format string, args ...any)
	// Debugf prints a message that few users need.
	Debugf(format string, args ...any)
	// Warnf prints a warning. WarnLong prints one of several lines.
	Warnf(format string, args ...any)
	WarnLong(what string)
	// Progress begins to show work of the given size. ProgressBytes is for work that is counted in bytes.
	Progress(ctx context.Context, what string, total int64) Progress
	ProgressBytes(ctx context.Context, what string, total int64) Progress
}

// Progress shows how far work is.
type Progress interface {
	Add(n int)
	Resize(total int64)
	Done()
}

// An Error is a fault that the user can mend.
type Error struct {
	Usage bool // the options are wrong. Otherwise a file is.
	Err   error
	Hints []string // what to do
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Usagef returns the error for options that are wrong. The hint has a line for each way to mend them.
func Usagef(hint, format string, args ...any) error {
	e := &Error{Usage: true, Err: fmt.Errorf(format, args...)}
	if hint != "" {
		e.Hints = strings.Split(hint, "\n")
	}
	return e
}

// BadInput marks err as the fault of an input file, unless it is already marked.
func BadInput(err error, hints ...string) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	return &Error{Err: err, Hints: hints}
}
