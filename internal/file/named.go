package file

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// naming has the names that files take when they are complete.
var naming struct {
	sync.RWMutex
	pairs [][2]string // a path for now, and its name
}

// Name makes texts call the folder at path by another name, which it takes when it is complete. The last name of a path holds.
// The last element of path
// must be a random word, which stands nowhere else.
func Name(path, name string) {
	naming.Lock()
	defer naming.Unlock()
	// the whole path goes first
	naming.pairs = slices.Insert(naming.pairs, 0, [2]string{path, name}, [2]string{filepath.Base(path), filepath.Base(name)})
}

// Named returns a text that calls files by the names that [Name] gave them. Whatever names a path to others calls it.
func Named(text string) string { return named(text, func(s string) string { return s }) }

// NamedJSON is Named for JSON.
func NamedJSON(text []byte) []byte {
	return []byte(named(string(text), func(s string) string {
		b, err := json.Marshal(s)
		if err != nil { // never of a string
			return s
		}
		return string(b[1 : len(b)-1])
	}))
}

func named(text string, quote func(string) string) string {
	naming.RLock()
	defer naming.RUnlock()
	for _, p := range naming.pairs {
		text = strings.ReplaceAll(text, quote(p[0]), quote(p[1]))
	}
	return text
}

// IsStdout reports whether path is one of the names of standard output.
func IsStdout(path string) bool {
	return slices.Contains([]string{"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}, path)
}

// RelativeTo returns path relative to the folder of file, so that both can move together. For standard output it
// returns an absolute path.
func RelativeTo(file, path string) string {
	abs := Absolute(path)
	if IsStdout(file) {
		return filepath.ToSlash(abs)
	}
	rel, err := filepath.Rel(Absolute(filepath.Dir(file)), abs)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// Absolute returns the absolute path, or path itself if there is no working folder.
func Absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}
