package listing

import (
	"fmt"
	"path/filepath"
)

// Rows lists the rows of the table at path. files are the paths of image files, relative to the folder of the table. If
// files is nil, the rows have no files. labels returns the texts in the label columns of a row.
func Rows(path string, n int, files []string, labels func(i int) []string) (*Listing, error) {
	l := newListing(false, false)
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
