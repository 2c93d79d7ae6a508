package ort

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// LibraryEnv is the environment variable that names another ONNX Runtime.
	LibraryEnv = "SWAGWRAP_ORT_LIB"
	// PythonEnv is the one in which the launcher of the Python package passes on
	// where the package onnxruntime has its library. It is no one's to set, and gives
	// way to LibraryEnv.
	PythonEnv = "SWAGWRAP_PYTHON_ORT_LIB"
)

// A LibraryError says why there is no usable ONNX Runtime.
type LibraryError struct {
	Path     string // the library; empty when none could be named
	Reason   string // one line
	Err      error  // the cause, or nil
	Provider string // that it should have; "" is CPU
}

func (e *LibraryError) Error() string {
	if e.Path == "" {
		return "ONNX Runtime: " + e.Reason
	}
	return fmt.Sprintf("ONNX Runtime %s: %s", e.Path, e.Reason)
}

func (e *LibraryError) Unwrap() error { return e.Err }

// A cacheError is what is wrong with the user's cache folder.
type cacheError struct{ error }

func (e cacheError) Unwrap() error { return e.error }

// Hint is one line that tells a user the way out.
func (e *LibraryError) Hint() string {
	if e.Provider == OpenVINO {
		return e.hintOpenVINO()
	}
	python, named := os.Getenv(PythonEnv), os.Getenv(LibraryEnv)
	fetch := fmt.Sprintf("`swagwrap setup` fetches ONNX Runtime %s with npm or pip; or ", Version)
	switch _, pinned := pins[platform()]; {
	case e.Path != "" && e.Path == python && python != named:
		return fmt.Sprintf("`python -m pip install --force-reinstall 'onnxruntime>=%s'` installs it anew; or name another library with --ort-lib or %s", MinVersion, LibraryEnv)
	case e.Path != "" && e.Path == named && python != "":
		fetch = "unset " + LibraryEnv + ", and that of the Python package onnxruntime is taken; or "
	case !pinned:
		fetch = ""
	case e.Path != "" && e.Path == named:
		fetch = "unset " + LibraryEnv + ", and " + fetch
	case errors.As(e.Err, new(cacheError)):
		fetch = "let XDG_CACHE_HOME, or HOME on macOS, name a folder that you can write to, for `swagwrap setup`; or "
	}
	return fetch + fmt.Sprintf("name the shared library of any release since %s with --ort-lib or %s", MinVersion, LibraryEnv)
}

func (e *LibraryError) hintOpenVINO() string {
	switch _, pinned := openVINOPins[platform()]; {
	case errors.Is(e.Err, errNoNode):
		return "--provider cpu runs it"
	case !pinned:
		return "leave --provider out: OpenVINO is offered for linux/amd64"
	case errors.As(e.Err, new(cacheError)):
		return "let XDG_CACHE_HOME, or HOME, name a folder that you can write to, for `swagwrap setup --provider openvino`"
	}
	return fmt.Sprintf("`swagwrap setup --provider openvino` fetches ONNX Runtime %s with OpenVINO with pip; or name a library that has this provider with --ort-lib", OpenVINOVersion)
}

// A Library is an ONNX Runtime library on disk, and what named it.
type Library struct {
	Path string
	By   string // --ort-lib, LibraryEnv, or in words
}

// Locate returns the path of the ONNX Runtime library to open: see [Find].
func Locate(explicit string) (string, error) {
	l, err := Find(explicit)
	return l.Path, err
}

// Find returns the ONNX Runtime library to open: explicit (the value of --ort-lib)
// if not empty, else that of the environment variable LibraryEnv, else the Python
// package's that the program came with, else the one that Install put into the
// user's cache folder. It checks that the file is there; Open checks what it is.
// Errors are *LibraryError; the Library is then what was tried.
func Find(explicit string) (Library, error) {
	for _, named := range []Library{
		{explicit, "--ort-lib"},
		{os.Getenv(LibraryEnv), LibraryEnv},
		{os.Getenv(PythonEnv), "the Python package onnxruntime"},
	} {
		if named.Path == "" {
			continue
		}
		if err := checkRegular(named.Path); err != nil {
			return named, &LibraryError{Path: named.Path, Reason: fmt.Sprintf("named by %s: %v", named.By, err), Err: err}
		}
		return named, nil
	}

	path, err := cachePath()
	l := Library{path, "swagwrap setup"}
	if err != nil {
		return l, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if denied := writable(filepath.Dir(path)); denied != nil {
			err = cacheError{denied}
		}
		return l, &LibraryError{Path: path, Reason: "not installed", Err: err}
	}
	if err != nil {
		return l, &LibraryError{Path: path, Reason: reason(err), Err: cacheError{err}}
	}
	if p := pins[platform()]; info.Size() != p.npm.size && info.Size() != p.pip.size {
		return l, &LibraryError{Path: path, Reason: fmt.Sprintf("damaged: %d bytes, want %d or %d", info.Size(), p.npm.size, p.pip.size)}
	}
	return l, nil
}

// cachePath is where Install puts the library.
func cachePath() (string, error) {
	if _, ok := pins[platform()]; !ok {
		return "", &LibraryError{Reason: "no pinned library for " + platform()}
	}
	dir, err := cacheFolder("onnxruntime-" + Version)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, libraryName()), nil
}

// cacheFolder is a folder of the user's cache.
func cacheFolder(name string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", &LibraryError{Reason: "no cache folder: " + err.Error(), Err: cacheError{err}}
	}
	return filepath.Join(dir, "swagwrap", name), nil
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
