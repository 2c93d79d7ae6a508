package listing

import (
	"path/filepath"
	"slices"
	"strings"
)

// Kinds of what is left out of folders, patterns and tars.
const (
	hiddenFolders = "hidden folders and those of systems, which may hold copies"
	macFiles      = "files ._* that macOS writes beside others"
)

// systemFolders are folders that programs put beside the user's own, with copies or thumbnails in them.
var systemFolders = []string{"__MACOSX", "@eaDir", "#recycle", "$RECYCLE.BIN", "System Volume Information"}

// hiddenFolder reports whether a folder below the one that the user named is left out.
func hiddenFolder(name string) bool {
	return len(name) > 1 && name[0] == '.' && name != ".." || slices.Contains(systemFolders, name)
}

// macFile reports whether macOS wrote a file beside another one, on a disk that does not keep all that it knows of files.
func macFile(name string) bool { return strings.HasPrefix(name, "._") }

// hiddenPath returns the kind of a path that is left out, or "".
func hiddenPath(path string) string {
	elements := strings.Split(filepath.ToSlash(path), "/")
	switch last := len(elements) - 1; {
	case slices.ContainsFunc(elements[:last], hiddenFolder):
		return hiddenFolders
	case macFile(elements[last]):
		return macFiles
	}
	return ""
}

// hiddenMatch returns the kind of a path that wildcards have found and that is left out, or "". Elements that the pattern itself
// names with a dot are wanted.
func hiddenMatch(pattern, path string) string {
	want, have := strings.Split(filepath.ToSlash(pattern), "/"), strings.Split(filepath.ToSlash(path), "/")
	if len(want) != len(have) {
		return ""
	}
	for i, name := range have {
		switch {
		case name == want[i] || strings.HasPrefix(want[i], "."):
		case i < len(have)-1 && hiddenFolder(name), i == len(have)-1 && hiddenFolder(name) && isFolder(path):
			return hiddenFolders
		case i == len(have)-1 && macFile(name):
			return macFiles
		}
	}
	return ""
}
