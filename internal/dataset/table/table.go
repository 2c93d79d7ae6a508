// Package table reads tables whose rows are examples. A column holds numbers, lists of numbers, or text. The formats
// are CSV (.csv, .tsv), Parquet (.parquet), and JSON lines (.jsonl). Gzip may have compressed the file (.csv.gz).
//
// # Invariants
//
// A column that was read has a value in every row, unless [OpenGaps] opened the table. Numbers are then finite. Integers
// are exact, up to 64 bits. Lists may differ in length only along their first dimension. Files are untrusted: numbers
// take 8 bytes of memory each. A Parquet file is refused if its numbers take more memory than a hundred times its
// size plus 64 MiB.
//
// # Concurrency
//
// Columns do not change after Read.
package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
)

// what names a table in errors.
const what = "a table"

// A fileFormat reads one kind of table. A new one is one file of this package, and a row in formats.
type fileFormat struct {
	extension string
	// open sets the names of the columns, and the function that reads some of them.
	open func(t *Table, f *io.SectionReader) error
}

var formats = []fileFormat{
	{".csv", (*Table).openCSV},
	{".tsv", (*Table).openCSV},
	{".jsonl", (*Table).openJSON},
	{".parquet", (*Table).openParquet},
}

// Extensions are the file extensions of tables.
var Extensions = func() (all []string) {
	for _, f := range formats {
		all = append(all, f.extension)
	}
	return all
}()

// Is reports whether the file at path has the name of a table, and is not a listing of images from swagwrap list. A folder with the
// parts of a table is one, too.
func Is(path string) bool {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return len(PartsOf(path)) > 0
	}
	if err != nil || !info.Mode().IsRegular() || !slices.Contains(Extensions, extension(path)) {
		return false
	}
	listing := false
	file.With(path, what, func(f *os.File, size int64) (err error) {
		_, listing, err = TextOf(f, size, ListingKey)
		return err // opening the table reports it
	})
	return !listing
}

// ListingKey is the key in a Parquet file under which a listing of images has its head: see package filelist.
const ListingKey = "swagwrap.listing"

// extension returns the extension of a table, also of one that gzip has compressed, such as x.csv.gz.
func extension(path string) string { return strings.ToLower(filepath.Ext(plain(path))) }

// plain returns a path without the extension of gzip.
func plain(path string) string {
	if ext := filepath.Ext(path); strings.EqualFold(ext, ".gz") {
		return strings.TrimSuffix(path, ext)
	}
	return path
}

// Table is a file whose column names are known.
type Table struct {
	Path string
	Rows int // set by Read
	// SHA256 is the hash of the file in hex, set by Read.
	SHA256 string
	Names  []string // of the columns, all different
	Lists  []bool   // whether the cells of a column are lists; in JSON, those of the first row unless OpenGaps set it

	gaps  bool
	parts []*Table                                       // the files of a table that has several
	with  func(do func(f *io.SectionReader) error) error // calls do with the content
	read  func(f *io.SectionReader, columns []*Column) (rows int, err error)
}

// Open reads the names of the columns.
func Open(path string) (*Table, error) {
	if parts := PartsOf(path); len(parts) > 0 {
		return OpenParts(path, parts)
	}
	return open(path, false, onDisk(path))
}

// InMemory is like [Open], for the content of a file of that name.
func InMemory(name string, content []byte) (*Table, error) {
	return open(name, false, func(do func(f *io.SectionReader) error) error {
		return file.Error(name, do(io.NewSectionReader(bytes.NewReader(content), 0, int64(len(content)))))
	})
}

func onDisk(path string) func(do func(f *io.SectionReader) error) error {
	return func(do func(f *io.SectionReader) error) error {
		return file.With(path, what, func(f *os.File, size int64) error {
			if plain(path) != path {
				return unpacked(f, size, do)
			}
			return do(io.NewSectionReader(f, 0, size))
		})
	}
}

// OpenGaps is like [Open], for a table that may lack numbers, such as saved predictions. A missing number is NaN, and a
// missing list has the length 0. Numbers may be infinite. Objects of JSON lines may have different keys.
func OpenGaps(path string) (*Table, error) { return open(path, true, onDisk(path)) }

func open(path string, gaps bool, with func(do func(f *io.SectionReader) error) error) (*Table, error) {
	t := &Table{Path: path, gaps: gaps, with: with}
	of := formats[max(0, slices.Index(Extensions, extension(path)))]
	if err := with(func(f *io.SectionReader) error { return of.open(t, f) }); err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(t.Names))
	if t.Lists == nil {
		t.Lists = make([]bool, len(t.Names))
	}
	for _, name := range t.Names {
		if seen[name] {
			return nil, fmt.Errorf("%s: two columns are named %q", path, name)
		}
		seen[name] = true
	}
	return t, nil
}

// Column is the content of a column.
type Column struct {
	Name  string
	Texts []string // as written, if it was read as text; the elements of a list are separated by spaces
	// Numbers are in Ints if all are written as integers, and otherwise in Floats.
	Ints   []int64
	Floats []float64
	// Lengths are the lengths of the rows' lists along their first dimension. It is nil if each row has one number.
	// Inner is the shape of a list's elements, and empty for numbers.
	Lengths []int
	Inner   []int

	// Categories are the texts of a column of categories that was read as text, in the order that the file gives them. Ordered
	// says that someone chose this order. Otherwise it may be that in which they occur.
	Categories []string
	Ordered    bool

	text, gaps bool
}

// Read reads the named columns, as text or as numbers.
func (t *Table) Read(text, numbers []string) (map[string]*Column, error) {
	found := map[string]*Column{}
	isText, isNumber := set(text), set(numbers)
	for i, name := range t.Names {
		if isText[name] || isNumber[name] {
			c := &Column{Name: name, text: isText[name], gaps: t.gaps}
			if t.Lists[i] && t.gaps {
				c.Lengths = []int{}
			}
			found[name] = c
		}
	}
	return found, t.readAll(found)
}

// set makes a lookup table of names. A table may have a million columns.
func set(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, name := range names {
		out[name] = true
	}
	return out
}

// errChanged is the error for a file that changes while it is read.
var errChanged = errors.New("is not what it was: another file took its place")

// ErrText is the error for text instead of numbers.
var ErrText = errors.New("want a number")

// place is the row or the line of a value, for errors.
type place struct {
	what   string
	number int
}

var allRows = place{"all rows", -1}

func (p place) String() string {
	if p.number < 0 {
		return p.what
	}
	return fmt.Sprintf("%s %d", p.what, p.number)
}

// fail returns the error for the value of a row.
func (c *Column) fail(where place, format string, args ...any) error {
	return fmt.Errorf("%s, column %q: %w", where, c.Name, fmt.Errorf(format, args...))
}

// addInt and addFloat append a number.
func (c *Column) addInt(v int64) {
	if c.Floats != nil {
		c.Floats = append(c.Floats, float64(v))
		return
	}
	c.Ints = append(c.Ints, v)
}

func (c *Column) addFloat(where place, v float64) error {
	if !c.gaps && (math.IsNaN(v) || math.IsInf(v, 0)) {
		return c.fail(where, "%v, want a finite number", v)
	}
	if c.Floats == nil {
		c.Floats = make([]float64, len(c.Ints), max(len(c.Ints)+1, cap(c.Ints)))
		for i, whole := range c.Ints {
			c.Floats[i] = float64(whole)
		}
		c.Ints = nil
	}
	c.Floats = append(c.Floats, v)
	return nil
}

// add parses and appends a number.
func (c *Column) add(where place, text string) error {
	if v, ok := parseInt(text); ok {
		c.addInt(v)
		return nil
	}
	v, err := parseFloat(text)
	if text == "" {
		return c.missing(where, "empty, want a number")
	}
	if _, comma := parseFloat(strings.Replace(text, ",", ".", 1)); err != nil && comma == nil {
		return c.fail(where, "%.40q, a decimal comma, want a point: with pandas, read_csv(path, sep=\";\", decimal=\",\").to_csv(path, "+
			"index=False)", text)
	}
	if err != nil {
		return c.fail(where, "%.40q, %w", text, ErrText)
	}
	return c.addFloat(where, v)
}

// missing adds a missing number or list, or fails with a message if the table may have no gaps.
func (c *Column) missing(where place, message string) error {
	switch {
	case !c.gaps:
		return c.fail(where, "%s", message)
	case c.Lengths == nil:
		return c.addFloat(where, math.NaN())
	}
	c.Lengths = append(c.Lengths, 0)
	return nil
}

// Len returns the number of numbers in the column.
func (c *Column) Len() int { return max(len(c.Ints), len(c.Floats)) }

// At returns number k of the column.
func (c *Column) At(k int) float64 {
	if c.Ints != nil {
		return float64(c.Ints[k])
	}
	return c.Floats[k]
}

// shaped records the shape of a row's list. Its first dimension may differ from row to row.
func (c *Column) shaped(where place, shape []int) error {
	switch {
	case c.Inner == nil:
		c.Inner = slices.Clone(shape[1:])
	case !slices.Equal(c.Inner, shape[1:]):
		return c.fail(where, "a list of shape %d, and others are of %d: only the first dimension may differ", shape,
			append([]int{c.Lengths[0]}, c.Inner...))
	}
	c.Lengths = append(c.Lengths, shape[0])
	return nil
}
