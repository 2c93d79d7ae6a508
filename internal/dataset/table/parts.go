package table

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/file"
)

// PartsOf returns the files of a folder that Spark and similar programs write for one table, in the order of their names as text:
// part-00000.parquet, part-00001.parquet. It returns nil for other folders. Names that begin with a dot or an underscore do not
// count, such as _SUCCESS.
func PartsOf(dir string) (parts []string) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	for ext := ""; ; {
		const some = 256 // of a folder with a million pictures, a few tell enough
		names, err := f.Readdirnames(some)
		for _, name := range names {
			if name[0] == '.' || name[0] == '_' {
				continue
			}
			own := extension(name)
			switch {
			case !slices.Contains(Extensions, own), ext != "" && own != ext:
				return nil
			case own != ".parquet" && !strings.HasPrefix(name, "part-"): // such as a list for each input of a network
				return nil
			}
			ext = own
			parts = append(parts, filepath.Join(dir, name))
		}
		if err != nil {
			slices.Sort(parts)
			return parts
		}
	}
}

// OpenParts opens files that hold one table. The rows of each follow those of the file before. All have the same columns. path
// names the table in errors.
func OpenParts(path string, parts []string) (*Table, error) {
	t := &Table{Path: path}
	for _, part := range parts {
		p, err := Open(part)
		if err != nil {
			return nil, err
		}
		t.parts = append(t.parts, p)
		first := t.parts[0]
		if a, b := beginning(first.Path), beginning(part); a != b {
			return nil, fmt.Errorf("%s: %s and %s may be of different sets: name one of them with a pattern, such as '%s'",
				path, filepath.Base(first.Path), filepath.Base(part), filepath.Join(filepath.Dir(part), b+"*"+filepath.Ext(part)))
		}
		if !slices.Equal(slices.Sorted(slices.Values(p.Names)), slices.Sorted(slices.Values(first.Names))) {
			return nil, fmt.Errorf("%s: the columns %q, and %s has %q: want the same in all files of a table",
				part, p.Names, first.Path, first.Names)
		}
	}
	t.Names, t.Lists = t.parts[0].Names, t.parts[0].Lists
	return t, nil
}

// beginning returns the letters of a file's name before the first digit. It tells the parts of a training set from those of a test
// set.
func beginning(path string) string {
	base := filepath.Base(path)
	if at := strings.IndexAny(base, "0123456789"); at >= 0 {
		return base[:at]
	}
	return base
}

// Arrange puts the rows of the parts in an order. It returns where the order is not known, or nil, for rows of other files that belong
// to them by their place. Arrange comes before Read, and the doubt is right after it.
func (t *Table) Arrange(order fileorder.Order) (doubt func() *fileorder.Doubt) {
	if len(t.parts) < 2 {
		return nil
	}
	fileorder.Sort(order, t.parts, func(p *Table) string { return p.Path })
	return func() *fileorder.Doubt {
		var names []string
		for _, p := range t.parts {
			names = append(names, filepath.ToSlash(p.Path))
		}
		d := order.Differs(names, fileorder.Sorted)
		if d == nil {
			return nil
		}
		row := 0
		for _, p := range t.parts[:d.At] {
			row += p.Rows
		}
		return d.Doubt(t.Path, row, func(k int) string { return names[k] }, fileorder.Sorted)
	}
}

// readAll reads the columns of all parts, or of the table itself.
func (t *Table) readAll(found map[string]*Column) error {
	parts := t.parts
	if parts == nil {
		parts = []*Table{t}
	}
	all, rows := sha256.New(), 0
	for _, p := range parts {
		columns := make([]*Column, len(p.Names))
		for i, name := range p.Names {
			columns[i] = found[name]
		}
		err := p.with(func(f *io.SectionReader) (err error) {
			if p.Rows, err = p.read(f, columns); err == nil && p.Rows == 0 && t.parts == nil {
				err = errors.New("no rows, want some")
			}
			if err != nil {
				return err
			}
			sum := sha256.New()
			if _, err := io.Copy(sum, io.NewSectionReader(f, 0, f.Size())); err != nil {
				return err
			}
			p.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return nil
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(all, p.SHA256)
		rows += p.Rows
	}
	if t.parts == nil {
		return nil
	}
	if t.Rows, t.SHA256 = rows, hex.EncodeToString(all.Sum(nil)); rows == 0 {
		return file.Error(t.Path, errors.New("no rows, want some"))
	}
	return nil
}
