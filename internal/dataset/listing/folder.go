package listing

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// addFolder lists a folder as torchvision's ImageFolder does. Its sub-folders are the classes, in sorted order, and
// hold images at any depth. A folder without images in sub-folders is a flat list without labels. Hidden folders are left out.
func (l *Listing) addFolder(root string) error {
	from := tree{root, imageExtensions, l.places.order}
	top, way := from.folder("", nil)
	if top.err != nil {
		return fmt.Errorf("%s: %w", root, top.err)
	}
	conflict := top.conflict
	classes, isFilled := make([][]folder, len(top.folders)), make([]bool, len(top.folders))
	var filled, empty []string
	for i, class := range top.folders {
		parts := from.walk(class, way)
		// Python sorts the paths of the folders, so "a-b" comes before "a/b".
		fileorder.Sort(l.places.order, parts, func(f folder) string { return filepath.ToSlash(f.path) })
		classes[i] = parts
		for _, p := range parts {
			conflict = cmp.Or(conflict, p.conflict)
		}
		switch {
		case slices.ContainsFunc(parts, func(p folder) bool { return len(p.images) > 0 }):
			filled, isFilled[i] = append(filled, class), true
		case !slices.ContainsFunc(parts, func(p folder) bool { return p.err != nil }):
			empty = append(empty, class)
		}
	}
	if conflict != nil {
		return conflict
	}
	for _, p := range slices.Concat([]folder{top}, slices.Concat(classes...)) {
		l.leaveSome("files in folders that are not named as pictures", p.others, []string{filepath.Join(root, p.path, p.other)})
		for _, names := range p.hidden {
			for k := range names {
				names[k] = filepath.Join(root, p.path, names[k])
			}
		}
		l.leaveKinds(p.hidden)
	}
	begin, first := len(l.examples), make([]int, len(classes))
	for i, class := range top.folders {
		first[i] = len(l.examples)
		// An unreadable folder is a class only if the numbers of other classes depend on it.
		if !isFilled[i] && (!l.strict || len(filled) == 0) {
			class = ""
		}
		var names []string
		var at []int
		for _, p := range classes[i] {
			names, at = append(names, filepath.ToSlash(p.path)), append(at, len(l.examples))
			l.addImages(root, p, class)
		}
		l.places.groups(root, fileorder.Sorted, names, at, len(l.examples))
	}
	l.places.groups(root, fileorder.Sorted, top.folders, first, len(l.examples))
	if len(filled) > 0 {
		l.places.nested = append(l.places.nested, nested{root, begin, len(l.examples)})
	}
	l.noteMetadata(root)
	parts := []string(nil)
	if len(filled) == 0 && len(top.images) == 0 {
		parts = table.PartsOf(root)
	}
	switch {
	case len(parts) > 0:
		return l.addParts(root, parts)
	case len(filled) == 0 && len(top.images) == 0:
		return fmt.Errorf("%s: no images in this folder, want files named %s", root, strings.Join(imageExtensions, " "))
	case len(filled) == 0:
		l.addImages(root, top, "")
	case len(top.images) > 0:
		return fmt.Errorf("%s: %s and %d other images are next to class folders such as %s, want all in class folders, or no such folders",
			root, top.images[0].name, len(top.images)-1, filled[0])
	case !l.strict:
		for i, class := range top.folders {
			if !isFilled[i] {
				l.empty = append(l.empty, filepath.Join(root, class))
			}
		}
	case len(empty) > 0:
		return fmt.Errorf("%s: no images in class folder %s: fill it, remove it, or give a list of class names", root,
			strings.Join(empty[:min(len(empty), 5)], ", "))
	}
	return nil
}

// addParts adds the pictures of Parquet files, which are the parts of one table.
func (l *Listing) addParts(root string, parts []string) error {
	if _, err := table.OpenParts(root, parts); err != nil {
		return err
	}
	fileorder.Sort(l.places.order, parts, filepath.ToSlash)
	first := make([]int, len(parts))
	for i, part := range parts {
		if first[i] = len(l.examples); !HasPictures(part) {
			return fmt.Errorf("%s: has no pictures, and the network takes some", part)
		}
		if err := l.add(part, KindListing); err != nil {
			return err
		}
	}
	l.places.groups(root, fileorder.Sorted, parts, first, len(l.examples))
	return nil
}

// noteMetadata notes a table with the labels of the pictures, as Hugging Face's datasets have one in a folder of pictures.
func (l *Listing) noteMetadata(root string) {
	for _, name := range []string{"metadata.csv", "metadata.jsonl", "metadata.parquet"} {
		path := filepath.Join(root, name)
		if _, err := os.Stat(path); err == nil && !l.unlabelled && !l.listed {
			l.rules = append(l.rules, fmt.Sprintf("%s is no picture. If it has labels, as for Hugging Face's datasets: %s", path,
				setting.Labels.With(path)))
		}
	}
}

// addImages adds the images of one folder. class is "" for a flat folder. An unreadable folder becomes one Example with
// the error.
func (l *Listing) addImages(root string, f folder, class string) {
	in := &place{path: filepath.Join(root, f.path), err: f.err}
	if f.err != nil {
		l.addExample(Example{in: in}, f.path, label{class, true}, -1)
	}
	l.examples = slices.Grow(l.examples, len(f.images)) // growing step by step would leave garbage
	for _, image := range f.images {
		l.addExample(Example{in: in, name: image.name}, filepath.Join(f.path, image.name), label{class, true}, image.size)
	}
	l.places.files(root, fileorder.Sorted, len(l.examples)-len(f.images), len(f.images))
}

// Files returns the paths of all files below a folder that have one of the extensions, sorted in each folder. Links are
// followed. A file is not opened, and may be anything but a folder.
func Files(root string, extensions []string) (paths []string, err error) {
	for _, f := range (tree{root, extensions, fileorder.Text}).walk("", nil) {
		if f.conflict != nil {
			return nil, f.conflict
		}
		if f.err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(root, f.path), f.err)
		}
		for _, image := range f.images {
			paths = append(paths, filepath.Join(root, f.path, image.name))
		}
	}
	return paths, nil
}

// tree is a folder whose files with the given extensions count.
type tree struct {
	root       string
	extensions []string
	order      fileorder.Order
}

// folder is the content of one folder, sorted by name.
type folder struct {
	path    string // below the root
	folders []string
	images  []imageFile
	err     error               // why it could not be read
	others  int                 // files that are neither images nor hidden
	other   string              // the first of them
	hidden  map[string][]string // names that are left out, by their kind

	conflict error // set if an image in it is an output file
}

type imageFile struct {
	name string
	size int64
}

// folder reads the folder path below the root, and follows links. above are the parent folders. A link back to one of
// them would have no end, so it is an error. way is above with this folder added.
func (t tree) folder(path string, above []os.FileInfo) (out folder, way []os.FileInfo) {
	out.path = path
	full := filepath.Join(t.root, path)
	info, err := os.Stat(full)
	if err != nil {
		out.err = file.Cause(err)
		return out, nil
	}
	if slices.ContainsFunc(above, func(a os.FileInfo) bool { return os.SameFile(a, info) }) {
		out.err = errors.New("a link to a folder that it is in")
		return out, nil
	}
	dir, err := os.Open(full)
	if err != nil {
		out.err = file.Cause(err)
		return out, nil
	}
	defer dir.Close()
	for {
		const some = 1024 // reading all entries at once would take more memory than their names
		entries, err := dir.ReadDir(some)
		for _, e := range entries {
			out.add(full, e, hasExtension(e.Name(), t.extensions))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return folder{path: path, err: file.Cause(err), conflict: out.conflict}, nil
		}
	}
	fileorder.Sort(t.order, out.folders, func(name string) string { return name })
	fileorder.Sort(t.order, out.images, func(f imageFile) string { return f.name })
	return out, append(slices.Clip(above), info)
}

// add adds e to the folder if it is a folder or an image.
func (f *folder) add(full string, e os.DirEntry, isImage bool) {
	isLink := e.Type()&os.ModeSymlink != 0
	if !e.IsDir() && !isLink && !isImage {
		if !strings.HasPrefix(e.Name(), ".") {
			if f.others++; f.other == "" || e.Name() < f.other {
				f.other = e.Name()
			}
		}
		return
	}
	if isImage && !e.IsDir() && macFile(e.Name()) {
		f.hide(macFiles, e.Name())
		return
	}
	// A broken link counts as a file, so its own row gets the error.
	size := int64(-1)
	info, err := os.Stat(filepath.Join(full, e.Name()))
	if err == nil {
		size = info.Size()
		f.conflict = cmp.Or(f.conflict, file.Listed(info))
	}
	switch {
	case err == nil && info.IsDir() && hiddenFolder(e.Name()):
		f.hide(hiddenFolders, e.Name())
	case err == nil && info.IsDir():
		f.folders = append(f.folders, e.Name())
	case isImage:
		f.images = append(f.images, imageFile{e.Name(), size})
	}
}

// hide notes a name that is left out.
func (f *folder) hide(kind, name string) {
	if f.hidden == nil {
		f.hidden = map[string][]string{}
	}
	f.hidden[kind] = append(f.hidden[kind], name)
}

// walk reads the folder path below the root, and all folders below it. The folder itself comes first.
func (t tree) walk(path string, above []os.FileInfo) []folder {
	f, way := t.folder(path, above)
	all := []folder{f}
	for _, sub := range f.folders {
		all = append(all, t.walk(filepath.Join(path, sub), way)...)
	}
	return all
}

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
