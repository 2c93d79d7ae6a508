package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
)

// addFolder lists a folder as torchvision's ImageFolder does: its sub-folders
// are the classes, in sorted order, and hold images at any depth. A folder
// without images in sub-folders is a flat list without labels.
func (l *listing) addFolder(root string, strict bool) error {
	top, way, err := readFolder(root, "", nil)
	if err != nil {
		return err
	}
	var filled, empty []string
	for _, class := range top.folders {
		parts, err := walk(root, class, way)
		if err != nil {
			return err
		}
		// Python sorts the folders' paths, so that "a-b" comes before "a/b".
		slices.SortFunc(parts, func(a, b folder) int { return strings.Compare(a.path, b.path) })
		before := len(l.examples)
		for _, p := range parts {
			l.addImages(root, p, class)
		}
		if len(l.examples) == before {
			empty = append(empty, class)
		} else {
			filled = append(filled, class)
		}
	}
	switch {
	case len(filled) == 0 && len(top.images) == 0:
		return fmt.Errorf("%s: no images in this folder, want files named %s", root, strings.Join(imageExtensions, " "))
	case len(filled) == 0:
		l.addImages(root, top, "")
	case len(top.images) > 0:
		return fmt.Errorf("%s: %s and %d other images lie beside class folders such as %s, want all in class folders, or no such folders", root, top.images[0].name, len(top.images)-1, filled[0])
	case strict && len(empty) > 0:
		return fmt.Errorf("%s: no images in class folder %s: fill it, remove it, or give a list of class names", root, strings.Join(empty[:min(len(empty), 5)], ", "))
	}
	return nil
}

// addImages adds the images of one folder; class is empty for a flat one.
func (l *listing) addImages(root string, f folder, class string) {
	in := &place{path: filepath.Join(root, f.path)}
	for _, image := range f.images {
		l.addExample(example{in: in, name: image.name}, filepath.Join(f.path, image.name), label{class, true}, image.size)
	}
}

// folder is what one folder holds, sorted by name.
type folder struct {
	path    string // below the root
	folders []string
	images  []imageFile
}

type imageFile struct {
	name string
	size int64
}

// readFolder reads the folder path below root. Links are followed. above are the
// folders on the way to it: a link back to one of them would have no end. It
// returns the way to what is below.
func readFolder(root, path string, above []os.FileInfo) (out folder, way []os.FileInfo, err error) {
	out.path = path
	full := filepath.Join(root, path)
	info, err := os.Stat(full)
	if err != nil {
		return out, nil, file.Error(full, err)
	}
	if slices.ContainsFunc(above, func(a os.FileInfo) bool { return os.SameFile(a, info) }) {
		return out, nil, fmt.Errorf("%s: a link to a folder that it is in", full)
	}
	entries, err := os.ReadDir(full) // sorted by name
	if err != nil {
		return out, nil, file.Error(full, err)
	}
	for _, e := range entries {
		isLink := e.Type()&os.ModeSymlink != 0
		isImage := hasExtension(e.Name(), imageExtensions)
		if !e.IsDir() && !isLink && !isImage {
			continue
		}
		// A broken link stays a file: its own row gets the error.
		size := int64(-1)
		info, err := os.Stat(filepath.Join(full, e.Name()))
		if err == nil {
			size = info.Size()
			if err := file.Listed(info); err != nil {
				return out, nil, err
			}
		}
		switch {
		case err == nil && info.IsDir():
			out.folders = append(out.folders, e.Name())
		case isImage:
			out.images = append(out.images, imageFile{e.Name(), size})
		}
	}
	return out, append(slices.Clip(above), info), nil
}

// walk reads the folder path below root and all below it.
func walk(root, path string, above []os.FileInfo) ([]folder, error) {
	f, way, err := readFolder(root, path, above)
	if err != nil {
		return nil, err
	}
	all := []folder{f}
	for _, sub := range f.folders {
		below, err := walk(root, filepath.Join(path, sub), way)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}
