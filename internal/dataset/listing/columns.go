package listing

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// Columns says which columns of a list or a table have the paths and the labels. Without these, names decide.
type Columns struct {
	Path   string
	Labels []string
}

// ErrColumn is the error for a column that the user named and that a file does not have.
var ErrColumn = errors.New("no such column")

// Names of columns, in lower case. The second ones count only if a file has none of the first.
var (
	pathColumns = [][]string{{"path", "file", "filename", "file_name", "filepath", "file_path", "image", "image_path", "img", "img_path"},
		{"image_id", "imageid", "image_name", "img_name", "img_id", "id_code"}}
	labelColumns = [][]string{{"label", "class", "class_name", "target", "category", "labels", "targets"},
		{"classid", "class_id", "label_id", "diagnosis", "dx"}}
)

// IsPathColumn reports whether a column of that name holds paths, or what identifies the example of a row.
func IsPathColumn(name string) bool {
	return slices.ContainsFunc(pathColumns, func(of []string) bool { return slices.Contains(of, strings.ToLower(name)) })
}

// Find returns the column with paths, or −1, the columns with labels, and the other ones. names are those of all columns. If
// several is true, names such as label_0 also count as labels. Otherwise there is at most one label column.
func (c Columns) Find(names []string, several bool) (path int, labels, others []int, err error) {
	path, labels = pathOf(names), labelsOf(names, several)
	if c.Path != "" {
		if path, err = columnIndex(names, c.Path); err != nil {
			return -1, nil, nil, err
		}
	}
	if c.Labels != nil {
		labels = nil
		for _, name := range c.Labels {
			i, err := columnIndex(names, name)
			if err != nil {
				return -1, nil, nil, err
			}
			labels = append(labels, i)
		}
		if c.Path == "" && slices.Contains(labels, path) {
			path = -1
		}
	}
	if !several && len(labels) > 1 {
		if c.Labels != nil {
			return -1, nil, nil, fmt.Errorf("%d columns of labels, want one: the network gives one answer for an example", len(labels))
		}
		labels = labels[:1]
	}
	labels = slices.DeleteFunc(labels, func(i int) bool { return i == path })
	if len(labels) == 0 {
		labels = nil
	}
	for i := range names {
		if i != path && !slices.Contains(labels, i) {
			others = append(others, i)
		}
	}
	return path, labels, others, nil
}

// columnIndex returns the column that the user named.
func columnIndex(names []string, name string) (int, error) {
	i := slices.Index(names, name)
	if i < 0 {
		i = slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
	}
	if i < 0 {
		return -1, fmt.Errorf("no column %q among %s: %w", name, numpy.Quote(names), ErrColumn)
	}
	return i, nil
}

func pathOf(names []string) int {
	for _, of := range pathColumns {
		if i := slices.IndexFunc(names, func(name string) bool { return slices.Contains(of, strings.ToLower(name)) }); i >= 0 {
			return i
		}
	}
	return -1
}

func labelsOf(names []string, several bool) (labels []int) {
	for k, of := range labelColumns {
		for i, name := range names {
			name = strings.ToLower(name)
			stem, _, _ := strings.Cut(name, "_")
			if slices.Contains(of, name) || several && k == 0 && slices.Contains(of, stem) {
				labels = append(labels, i)
			}
		}
		if labels != nil {
			return labels
		}
	}
	return nil
}
