package listing

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// HasPictures reports whether the file at path is a Parquet file with pictures in it.
func HasPictures(path string) bool {
	p, err := table.OpenPictures(path)
	return err == nil && p != nil
}

// ErrInside is the error for pictures that are no range of bytes of a file.
var ErrInside = errors.New("want files of pictures, or a tar")

// addParquet adds the pictures of a Parquet file. They are copied to a temporary file without a name, since Parquet compresses
// them in blocks.
func (l *Listing) addParquet(p *table.Pictures) error {
	if l.listed {
		return fmt.Errorf("%s: pictures in a Parquet file are compressed in blocks, so a listing cannot point to one: %w",
			p.Path, ErrInside)
	}
	labels, err := l.parquetLabels(p)
	if err != nil {
		return err
	}
	spooled, err := tempfile.Nameless(os.TempDir())
	if err != nil {
		return tempfile.Temp(err)
	}
	in := &place{path: p.Path, spooled: spooled}
	beside := &place{path: filepath.Dir(p.Path)}
	off := int64(0)
	return p.Each(func(row int, bytes []byte, path string) error {
		v := label{}
		if labels != nil {
			v.text = labels[row]
		}
		if len(bytes) == 0 && path != "" { // the picture is a file of its own
			if err := checkPath(path); err != nil {
				return fmt.Errorf("%s: row %d: %w", p.Path, row, err)
			}
			return l.addFile(beside, path, v.text)
		}
		if _, err := spooled.WriteAt(bytes, off); err != nil {
			return tempfile.Temp(err)
		}
		size := int64(len(bytes))
		name := fmt.Sprintf("[%d]", row)
		in.entries = append(in.entries, entry{off, size})
		off += size
		l.sum.Write(bytes)
		l.addExample(Example{in: in, name: name, at: int32(len(in.entries) - 1)}, name, v, size)
		return nil
	})
}

// parquetLabels returns the label of each row as text, or nil if there are none. A ClassLabel becomes the name of its class.
func (l *Listing) parquetLabels(p *table.Pictures) ([]string, error) {
	t, err := table.Open(p.Path)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(t.Names), func(name string) bool { return name == p.Column })
	_, at, left, err := l.columns.Find(others, l.several)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Path, err)
	}
	classes := ClassLabels(p.Features)
	if at == nil && len(classes) == 1 {
		at = []int{slices.IndexFunc(others, func(name string) bool { return classes[name] != nil })}
		left = slices.DeleteFunc(left, func(i int) bool { return slices.Contains(at, i) })
	}
	l.leave("columns of a table that are neither pictures nor labels", names.Pick(others, left)...)
	if l.unlabelled || len(at) == 0 || at[0] < 0 {
		return nil, nil
	}
	wanted := names.Pick(others, at)
	columns, err := t.Read(wanted, nil)
	if err != nil {
		return nil, err
	}
	if t.Rows != p.Rows {
		return nil, file.Error(p.Path, fmt.Errorf("%d labels for %d pictures", t.Rows, p.Rows))
	}
	known := classes[wanted[0]]
	if len(wanted) > 1 || l.byNumber {
		known = nil
	} else if c := columns[wanted[0]]; known == nil {
		l.addCategories(c, p.Path)
	}
	if known != nil && l.fileClasses == nil {
		l.fileClasses = known
	}
	out := make([]string, t.Rows)
	for i := range out {
		var cells []string
		for _, name := range wanted {
			cells = append(cells, columns[name].Texts[i])
		}
		if out[i], err = joined(cells); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", p.Path, i, err)
		}
		if n, err := strconv.Atoi(strings.TrimSpace(out[i])); known != nil && err == nil && target.NoClass(float64(n)) {
			out[i] = "" // datasets without labels
			continue
		}
		if known == nil || out[i] == "" {
			continue
		}
		n, err := strconv.Atoi(out[i])
		if err != nil || n < 0 || n >= len(known) {
			return nil, fmt.Errorf("%s: row %d: label %q, want a number of one of %d classes", p.Path, i, out[i], len(known))
		}
		out[i] = known[n]
	}
	return out, nil
}

// ClassNames returns the names of classes that the files themselves number, or nil.
func (l *Listing) ClassNames() []string { return l.fileClasses }

// addCategories notes the order of the categories in one of several files. Files may have a part of them.
func (l *Listing) addCategories(c *table.Column, path string) {
	own := l.categories
	switch {
	case c.Categories == nil || own.Ordered && !c.Ordered:
	case own.Order == nil || c.Ordered && !own.Ordered, c.Ordered == own.Ordered && names.Within(own.Order, c.Categories):
		l.categories = names.Categories{Order: c.Categories, Ordered: c.Ordered, File: path}
	case own.Ordered && !names.Within(c.Categories, own.Order) && own.Conflict == "":
		l.categories.Conflict = fmt.Sprintf("%s has the categories in the order %q, and %s in the order %q", own.File, own.Order, path,
			c.Categories)
	}
}
