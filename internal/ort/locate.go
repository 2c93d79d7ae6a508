package ort

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/setting"
)

const (
	// LibraryEnv is the environment variable that names another ONNX Runtime.
	LibraryEnv = "SWAGWRAP_ORT_LIB"
	// PythonEnv names the library of the Python package onnxruntime. The launcher of swagwrap's Python package sets
	// it; users must not. LibraryEnv takes precedence.
	PythonEnv = "SWAGWRAP_PYTHON_ORT_LIB"
)

// A LibraryError reports that there is no usable ONNX Runtime.
type LibraryError struct {
	Path     string // the library; empty if its path is unknown
	Reason   string // one line
	Err      error  // the cause, or nil
	Provider string // the provider that the library should have; "" is CPU
}

func (e *LibraryError) Error() string {
	if e.Path == "" {
		return "ONNX Runtime: " + e.Reason
	}
	return fmt.Sprintf("ONNX Runtime %s: %s", e.Path, e.Reason)
}

func (e *LibraryError) Unwrap() error { return e.Err }

// A cacheError is a problem with the user's cache folder.
type cacheError struct{ error }

func (e cacheError) Unwrap() error { return e.error }

// Hint returns one line that tells the user how to solve the problem.
func (e *LibraryError) Hint() string {
	if hint := e.hintCache(); hint != "" {
		return hint
	}
	if hint := (Provider{Name: e.Provider}).kind().hint; hint != nil {
		if os.Getenv(LibraryEnv) != "" && e.Path != "" && errors.Is(e.Err, fs.ErrNotExist) {
			return fmt.Sprintf("%s; %s names a library for the processor only, and %s one for any provider", hint(e), LibraryEnv,
				setting.Runtime)
		}
		return hint(e)
	}
	python, named := os.Getenv(PythonEnv), os.Getenv(LibraryEnv)
	fetch := fmt.Sprintf("%s fetches ONNX Runtime with pip (%s) or npm (%s); or ", e.setup(), Version, DeviceVersion)
	switch _, pinned := pins[platform()]; {
	case e.Path != "" && e.Path == python && python != named:
		return fmt.Sprintf("`python -m pip install --force-reinstall 'onnxruntime>=%s'` installs it anew; or name another library with "+
			"%s or %s", MinVersion, setting.Runtime, LibraryEnv)
	case e.Path != "" && e.Path == named && python != "":
		fetch = "unset " + LibraryEnv + ", and that of the Python package onnxruntime is taken; or "
	case !pinned:
		fetch = ""
	case e.Path != "" && e.Path == named:
		fetch = "unset " + LibraryEnv + ", and " + fetch
	}
	return fetch + e.otherLibrary()
}

// hintCache returns the hint for a cache that setup cannot repair, or "".
func (e *LibraryError) hintCache() string {
	other := "; or " + e.otherLibrary()
	if stranger, ok := errors.AsType[strangerError](e.Err); ok {
		return "remove " + stranger.path + other
	}
	if errors.As(e.Err, new(cacheError)) {
		return "let XDG_CACHE_HOME, or HOME on macOS, name a folder of yours that you can write to, for " + e.setup() + other
	}
	return ""
}

// A Library is the path of an ONNX Runtime library and the source of that path.
type Library struct {
	Path string
	By   string // the setting or the variable that names it, or a description

	cache bundle // what it must be; zero for a library that the user names
}

// Find returns the library to open for the provider. It uses the first of these that is set:
//
//   - explicit, which the user names
//   - the environment variable LibraryEnv
//   - the library of the Python package that started the program
//   - the library that Install put into the user's cache folder
//
// The variables only name libraries for CPU. Find checks that the file exists; [Provider.Open] checks what it is. An
// error is as of Open, and the Library is then the one that was tried.
func (p Provider) Find(explicit string) (Library, error) {
	named := []Library{{Path: explicit, By: setting.Runtime.String()}}
	l := Library{By: setting.Line(p.setup())}
	if p.kind().own == processor().own {
		named = append(named, Library{Path: os.Getenv(LibraryEnv), By: LibraryEnv}, Library{
			Path: os.Getenv(PythonEnv),
			By:   "the Python package onnxruntime",
		})
	}
	for _, n := range named {
		if n.Path == "" {
			continue
		}
		if err := checkRegular(n.Path); err != nil {
			return n, p.unusable(n.Path, fmt.Sprintf("named by %s: %v", n.By, err), err)
		}
		return n, nil
	}
	b, dir, err := p.cached()
	if err != nil {
		return l, err
	}
	l.Path, l.cache = b.main(dir), b
	_, err = os.Lstat(l.Path)
	return l, b.failure(dir, err)
}

// failure converts an error about a library of the cache. It returns nil for nil.
func (b bundle) failure(dir string, err error) error {
	p, path := Provider{Name: b.provider}, b.main(dir)
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(damagedError)), errors.As(err, new(strangerError)), errors.As(err, new(sharedError)):
		return p.unusable(path, err.Error(), err)
	case errors.Is(err, fs.ErrNotExist):
		if denied := writable(dir); denied != nil {
			err = cacheError{denied}
		}
		return p.unusable(path, "not installed", err)
	}
	return p.unusable(path, reason(err), cacheError{err})
}

// unusable returns a [*LibraryError]. Where the machine lacks memory, threads or open files, the library is not the
// cause, and the error is of another type.
func (p Provider) unusable(path, reason string, err error) error {
	if scarce(err) {
		return fmt.Errorf("ONNX Runtime %s: %w", path, file.Cause(err))
	}
	return &LibraryError{Path: path, Reason: reason, Err: err, Provider: p.Name}
}

// reason removes the path from an error, because the caller's message has it already.
func reason(err error) string { return file.Cause(err).Error() }

// checkRegular returns an error without the path, unless path is a regular file that can be read.
func checkRegular(path string) error {
	f, _, err := file.Regular(path)
	if err == nil {
		err = f.Close()
	}
	return file.Cause(err)
}
