package ort

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LibraryEnv is the environment variable that names another ONNX Runtime.
const LibraryEnv = "SWAGWRAP_ORT_LIB"

// A LibraryError says why there is no usable ONNX Runtime.
type LibraryError struct {
	Path   string // the library; empty when none could be named
	Reason string // one line
	Err    error  // the cause, or nil
}

func (e *LibraryError) Error() string {
	if e.Path == "" {
		return "ONNX Runtime: " + e.Reason
	}
	return fmt.Sprintf("ONNX Runtime %s: %s", e.Path, e.Reason)
}

func (e *LibraryError) Unwrap() error { return e.Err }

// Hint is one line that tells a user the way out.
func (e *LibraryError) Hint() string {
	return fmt.Sprintf("`swagwrap setup` fetches ONNX Runtime %s with npm or pip; or name the shared library of any release since %s with --ort-lib or %s",
		Version, MinVersion, LibraryEnv)
}

// Locate returns the path of the ONNX Runtime library to open: explicit (the
// value of --ort-lib) if not empty, else the environment variable LibraryEnv,
// else the one that Install put into the user's cache folder. It checks that
// the file is there; Open checks what it is. Errors are *LibraryError.
func Locate(explicit string) (string, error) {
	env := os.Getenv(LibraryEnv)
	for _, named := range []struct{ path, by string }{{explicit, "--ort-lib"}, {env, LibraryEnv}} {
		if named.path == "" {
			continue
		}
		if err := checkRegular(named.path); err != nil {
			return "", &LibraryError{named.path, fmt.Sprintf("named by %s: %v", named.by, err), err}
		}
		return named.path, nil
	}

	path, err := cachePath()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &LibraryError{path, "not installed", err}
	}
	if err != nil {
		return "", &LibraryError{path, reason(err), err}
	}
	if p := pins[platform()]; info.Size() != p.npm.size && info.Size() != p.pip.size {
		return "", &LibraryError{path, fmt.Sprintf("damaged: %d bytes, want %d or %d", info.Size(), p.npm.size, p.pip.size), nil}
	}
	return path, nil
}

// cachePath is where Install puts the library.
func cachePath() (string, error) {
	if _, ok := pins[platform()]; !ok {
		return "", &LibraryError{"", "no pinned library for " + platform(), nil}
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", &LibraryError{"", "no cache folder: " + err.Error(), err}
	}
	return filepath.Join(dir, "swagwrap", "onnxruntime-"+Version, libraryName()), nil
}

func checkRegular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return errors.New(reason(err))
	}
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return nil
}

// reason strips the path that the caller already names.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
