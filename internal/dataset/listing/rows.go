package listing

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Head finds columns of a table by their names. It returns the column with paths, or −1, and the columns with labels.
// If several is true, names such as label_0 also count as labels. Otherwise there is at most one label column.
func Head(names []string, several bool) (path int, labels []int) {
	path, labels, _ = among(names, several)
	return path, labels
}

// among is like [Head], and also returns the other columns.
func among(names []string, several bool) (path int, labels, others []int) {
	path = -1
	for i, f := range names {
		f = strings.ToLower(f)
		stem, _, _ := strings.Cut(f, "_")
		switch {
		case path < 0 && slices.Contains(pathColumns, f):
			path = i
		case slices.Contains(labelColumns, f) || several && slices.Contains(labelColumns, stem):
			labels = append(labels, i)
		default:
			others = append(others, i)
		}
	}
	if !several && len(labels) > 1 {
		others, labels = append(others, labels[1:]...), labels[:1]
	}
	return path, labels, others
}

// Rows lists the rows of the table at path. files are the paths of image files, relative to the folder of the table. If
// files is nil, the rows have no files. labels returns the texts in the label columns of a row.
func Rows(path string, n int, files []string, labels func(i int) []string) (*Listing, error) {
	l := newListing(false, false)
	l.sizes = []int64{}
	l.beginSource(path)
	in := &place{path: filepath.Dir(path)}
	for i := range n {
		class, err := joined(labels(i))
		if err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i, err)
		}
		if files == nil {
			l.addExample(Example{name: fmt.Sprintf("%s[%d]", filepath.Base(path), i)}, "", label{text: class}, -1)
			continue
		}
		if err := checkPath(files[i]); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", path, i, err)
		}
		if err := l.addFile(in, files[i], class); err != nil {
			return nil, err
		}
	}
	l.endSource()
	return l, nil
}

// IsPathColumn reports whether a column of that name holds paths.
func IsPathColumn(name string) bool { return slices.Contains(pathColumns, strings.ToLower(name)) }
