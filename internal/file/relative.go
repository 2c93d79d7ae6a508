package file

import (
	"path/filepath"
	"slices"
)

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
