package open

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/keys"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
)

// A KindError is the error of a file that was opened as kind Want, and may have another one.
type KindError struct {
	Err  error
	Path string
	Want kind.Kind
}

func (e *KindError) Error() string { return e.Err.Error() }
func (e *KindError) Unwrap() error { return e.Err }

// Found returns the kind of the file, and whether the error follows from that. Otherwise it probably is a file of the wanted
// kind, but with a fault.
func (e *KindError) Found() (is kind.Kind, differs bool) {
	is = kind.Detect(e.Path)
	switch {
	case is == e.Want, e.Want == kind.Checkpoint && (is == kind.Model || is == kind.Average),
		is == kind.Data && (e.Want == kind.Predictions || e.Want == kind.Settings):
		return is, false
	}
	return is, is != kind.Unknown
}

// WrongKind marks err, the error of a file that was opened as kind want.
func WrongKind(err error, path string, want kind.Kind) error {
	if foreign := foreign(err, path, want); foreign != nil {
		return foreign
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*Error)) {
		return BadInput(err)
	}
	return BadInput(&KindError{err, path, want})
}

// foreign returns the error for a file of another program whose format is known, or nil.
func foreign(err error, path string, want kind.Kind) error {
	if err == nil || errors.As(err, new(*Error)) {
		return nil
	}
	f, ok := kind.ForeignOf(path)
	is := kind.Detect(path)
	switch {
	case !ok, !f.Archive && is != kind.Unknown && is != kind.Folder:
		return nil
	case want == kind.Data && f.Data != "":
		return BadInput(fmt.Errorf("%s: %s, want %s", path, f.Name, Wanted(want)), f.Data)
	case want == kind.Data:
		return BadInput(fmt.Errorf("%s: %s, want %s", path, f.Name, Wanted(want)))
	}
	return BadInput(fmt.Errorf("%s: %s, want %s", path, f.Name, Wanted(kind.Checkpoint)), f.Export)
}

// Wanted describes the files of a kind.
func Wanted(want kind.Kind) string {
	switch want {
	case kind.Checkpoint:
		return "a checkpoint: an ONNX model or a file of PyTorch"
	case kind.Data:
		return "data: images, arrays or a table"
	}
	return want.String()
}

// A DataError is the error of data that could not be opened.
type DataError struct{ Err error }

func (e *DataError) Error() string { return e.Err.Error() }
func (e *DataError) Unwrap() error { return e.Err }

// WrongData is like [WrongKind], for inputs that were opened as data.
func WrongData(err error, paths ...string) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	if order := FileOrder(err); order != nil {
		return order
	}
	for _, path := range paths {
		if foreign := foreign(err, path, kind.Data); foreign != nil {
			return foreign
		}
		if is := kind.Detect(path); is != kind.Data && is != kind.Folder && is != kind.Unknown {
			return WrongKind(err, path, kind.Data)
		}
	}
	return BadInput(&DataError{err})
}

// WrongGroups marks err, the error of a table with the groups of examples.
func WrongGroups(err error) error {
	if order := FileOrder(err); order != nil {
		return order
	}
	return BadInput(err)
}

// FileOrder returns the error for files that belong to rows in an order that nobody knows, or nil for other errors.
func FileOrder(err error) error {
	order := (*fileorder.Error)(nil)
	switch {
	case errors.As(err, &order):
		return &Error{Usage: true, Err: err, Hints: order.Hints()}
	case errors.Is(err, dataset.ErrPairs):
		return &Error{
			Usage: true,
			Err:   err,
			Hints: []string{"give a list for each input, such as left.csv and right.csv in place of the folders, with the path of a " +
				"file in each row"},
		}
	case errors.Is(err, keys.ErrUnnamed):
		return &Error{
			Usage: true,
			Err:   err,
			Hints: []string{"add a column path with the name of each file, such as scans/17.png or 17.png; another order of the rows " +
				"then does no harm"},
		}
	}
	return nil
}

// WrongCheckpoint is like [WrongKind], for files that were opened as checkpoints.
func WrongCheckpoint(err error) error {
	if wrong := (*checkpoints.UnusedError)(nil); errors.As(err, &wrong) {
		return Usagef(wrong.Hint, "%w", err)
	}
	if question := checkpoints.Question(err); question != nil { // its hints are those of its fault
		return Usagef("", "%w", err)
	}
	var where *onnxio.Error
	if errors.As(err, &where) {
		return WrongKind(err, where.Path, kind.Checkpoint)
	}
	if missing := (*fs.PathError)(nil); errors.As(err, &missing) {
		return WrongKind(err, missing.Path, kind.Checkpoint)
	}
	return BadInput(err)
}

// A CheckpointError is the error of a posterior's checkpoint that is missing or has changed.
type CheckpointError struct{ Err error }

func (e *CheckpointError) Error() string { return e.Err.Error() }
func (e *CheckpointError) Unwrap() error { return e.Err }

// WrongCheckpoints marks err, the error of a posterior's checkpoints: missing or changed ones are a [CheckpointError].
func WrongCheckpoints(err error) error {
	if checkpoints.Question(err) != nil {
		return WrongCheckpoint(err)
	}
	if errors.As(err, new(*infer.ChangedError)) || errors.Is(err, fs.ErrNotExist) {
		return BadInput(&CheckpointError{err})
	}
	return BadInput(err)
}
