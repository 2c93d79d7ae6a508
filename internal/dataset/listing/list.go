package listing

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/csvsafe"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/names"
)

// addList adds the images that a list file names. Paths are relative to the folder of the list.
func (l *Listing) addList(path string) error {
	f, _, err := file.Open(path, "a list")
	if err != nil {
		return file.Error(path, err)
	}
	defer f.Close()
	in := &place{path: filepath.Dir(path)}
	var conflict error
	var from io.Reader = f
	if unzipped(path) != path {
		if from, err = gzip.NewReader(f); err != nil {
			return file.Error(path, err)
		}
	}
	err = parseList(from, strings.ToLower(filepath.Ext(unzipped(path))), l.headOf, func(name, class string) {
		conflict = cmp.Or(conflict, l.addFile(in, name, class))
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return conflict
}

// addFile adds an image file that a list names. It returns an error if the file is an output.
func (l *Listing) addFile(in *place, name, class string) (conflict error) {
	e := Example{in: in, name: strings.Clone(filepath.FromSlash(name))}
	if filepath.IsAbs(e.name) {
		e.in = nil
	}
	size := int64(-1)
	info, err := os.Stat(e.Path())
	if err != nil && !hasExtension(name, imageExtensions) {
		if found, ext := in.withExtension(e.Path()); found != nil {
			info, err = found, nil
			e.name, name = e.name+ext, name+ext
		}
	}
	if err == nil {
		size, conflict = info.Size(), file.Listed(info)
	}
	l.addExample(e, name, label{text: class}, size)
	return conflict
}

// withExtension finds the image that a list names without its extension, as lists with a column image_id do. It tries the last
// extension first.
func (in *place) withExtension(path string) (info os.FileInfo, ext string) {
	for _, ext := range append([]string{in.ext}, imageExtensions...) {
		if ext == "" {
			continue
		}
		for _, ext := range []string{ext, strings.ToUpper(ext)} {
			if info, err := os.Stat(path + ext); err == nil && info.Mode().IsRegular() {
				in.ext = ext
				return info, ext
			}
		}
	}
	return nil, ""
}

// maxLine is the largest length of a line in a list, in bytes.
const maxLine = 64 << 10

// parseList calls row for each line of a list, with a path, and a label or "". It skips empty lines and lines that
// begin with #. In .csv files commas separate the fields, which may be guarded as in package csvsafe, and may have several lines if
// they are quoted. In other files tabs separate them. In .txt files a label may also follow the extension of the
// image after a space, as in "a b.jpg 3". A head finds the columns in the first line. If there are several labels,
// row gets all labels of a line, separated by spaces.
func parseList(r io.Reader, ext string, head func(fields []string) (c listColumns, isHeader bool, err error),
	row func(path, label string)) error {
	var next func() (fields []string, line int, err error)
	comma := ','
	if ext == ".csv" {
		in := csvsafe.NewRows(r, maxLine, true, commaOf)
		in.FieldsPerRecord = -1
		next, comma = func() ([]string, int, error) { return nextRow(in) }, in.Comma
	} else {
		in := &plainLines{in: bufio.NewScanner(csvsafe.UTF8(r)), ext: ext}
		in.in.Buffer(nil, maxLine)
		next = in.next
	}
	var columns listColumns
	var form csvsafe.Form
	for first := true; ; first = false {
		fields, line, err := next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if first {
			var isHeader bool
			if columns, isHeader, err = head(fields); err != nil {
				return err
			}
			if isHeader {
				continue
			}
		}
		if comma == ';' {
			for _, i := range columns.labels {
				if i < len(fields) {
					where := func() string { return fmt.Sprintf("line %d", line) }
					if fields[i], _, err = form.Number(fields[i], where); err != nil {
						return err
					}
				}
			}
		}
		path, label, err := columns.pick(fields)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		row(path, label)
	}
}

// commaOf returns the sign between the cells of a .csv list, by its first line. A path may contain a semicolon, so another sign than the
// comma needs a header, or the name of an image before it.
func commaOf(first string) rune {
	comma := csvsafe.Comma(first)
	fields := strings.Split(strings.ReplaceAll(first, `"`, ""), string(comma))
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	if pathOf(fields) >= 0 || labelsOf(fields, false) != nil || hasExtension(fields[0], imageExtensions) {
		return comma
	}
	return ','
}

// nextRow returns the cells of the next row of a .csv list, and its line.
func nextRow(in *csvsafe.Rows) (fields []string, line int, err error) {
	n, err := in.Next()
	if err != nil {
		return nil, 0, err
	}
	for i := range n {
		text, _ := in.Cell(i)
		fields = append(fields, text)
	}
	line, column := in.FieldPos(0)
	if n == 1 && fields[0] == "" || column > 1 && strings.HasPrefix(fields[0], "#") { // spaces, or a comment behind them
		return nextRow(in)
	}
	return fields, line, nil
}

// plainLines reads the lines of another list.
type plainLines struct {
	in  *bufio.Scanner
	ext string
	n   int // lines that were read
}

func (l *plainLines) next() (fields []string, line int, err error) {
	for l.in.Scan() {
		l.n++
		text := strings.TrimSpace(strings.TrimPrefix(l.in.Text(), "\ufeff")) // some editors write a byte order mark
		if text == "" || text[0] == '#' {
			continue
		}
		if fields = strings.Split(text, "\t"); l.ext == ".txt" && len(fields) == 1 {
			fields = splitSpace(text)
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		return fields, l.n, nil
	}
	if errors.Is(l.in.Err(), bufio.ErrTooLong) {
		return nil, 0, fmt.Errorf("line %d: longer than %d bytes, want one path a line", l.n+1, maxLine)
	}
	return nil, 0, cmp.Or(l.in.Err(), io.EOF)
}

// splitSpace splits a line at the first space after the name of an image. It does not split a line that is such a name
// as a whole, because paths may contain spaces.
func splitSpace(line string) []string {
	if hasExtension(line, imageExtensions) {
		return []string{line}
	}
	for i, b := range []byte(line) {
		if b == ' ' && hasExtension(line[:i], imageExtensions) {
			return []string{line[:i], line[i+1:]}
		}
	}
	return []string{line}
}

// listColumns has the indices of the columns with the path and the labels.
type listColumns struct {
	path   int
	labels []int
	count  int
}

// headOf reads the first line, which is a header if it has a column named path or similar. If there are several labels and
// no column has a usual label name, all columns except the path are labels.
func (l *Listing) headOf(fields []string) (c listColumns, isHeader bool, err error) {
	path, labels, others, err := l.columns.Find(fields, l.several)
	if err != nil {
		return c, true, err
	}
	if path < 0 && len(fields) > 1 && bareHead(fields) {
		path, labels = 0, []int{1}
		others = others[:0]
		for i := 2; i < len(fields); i++ {
			others = append(others, i)
		}
		if l.several {
			labels, others = append(labels, others...), nil
		}
	}
	if l.several && labels == nil {
		labels, others = others, nil
	}
	if path < 0 {
		c = listColumns{path: 0, labels: []int{1}, count: 2}
		for l.several && c.count < len(fields) {
			c.labels, c.count = append(c.labels, c.count), c.count+1
		}
		return c, false, nil
	}
	c = listColumns{path, labels, len(fields)}
	if l.several && len(labels) > 0 && !l.unlabelled {
		order, err := l.orderTargets(names.Pick(fields, labels))
		if err != nil {
			return c, true, err
		}
		c.labels = names.Pick(labels, order)
	}
	l.leave("columns of a list that are neither paths nor labels", names.Pick(fields, others)...)
	return c, true, nil
}

// bareHead reports whether a line is a header with short names that tables of numbers may have for something else, such as name,y.
func bareHead(fields []string) bool {
	path, label := strings.ToLower(fields[0]), strings.ToLower(fields[1])
	return slices.Contains([]string{"name", "id", "x", "key"}, path) && slices.Contains([]string{"y", "label", "class", "target"}, label)
}

// orderTargets returns the order of columns of labels. Later lists must have columns of the same names.
func (l *Listing) orderTargets(have []string) (order []int, err error) {
	order, rule, err := l.targets.Order(have)
	if err != nil {
		return nil, err
	}
	l.rules = append(l.rules, rule)
	if l.targets.Known == nil {
		l.targets.Known, l.targets.From = names.Pick(have, order), l.inputs[len(l.inputs)-1].Path
	}
	return order, nil
}

func (c listColumns) pick(fields []string) (path, label string, err error) {
	if len(fields) > c.count {
		return "", "", fmt.Errorf("%d columns, want %d: a path and a label, or as the header says", len(fields), c.count)
	}
	if c.path < len(fields) {
		path = fields[c.path]
	}
	switch {
	case len(c.labels) == 1 && c.labels[0] < len(fields):
		label = fields[c.labels[0]]
	case len(c.labels) > 1:
		if label, err = c.several(fields); err != nil {
			return "", "", err
		}
	}
	return path, label, checkPath(path)
}

func checkPath(path string) error {
	switch {
	case path == "":
		return errors.New("no path")
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("%.40q, want a path: is this a text file?", path)
	case strings.Contains(path, "://"):
		return fmt.Errorf("%.80q is a URL, want the path of a file", path)
	}
	return nil
}

// several returns the labels of a line, separated by spaces. It returns "" if all are missing.
func (c listColumns) several(fields []string) (string, error) {
	if len(fields) != c.count {
		return "", fmt.Errorf("%d columns, want %d as in the first line", len(fields), c.count)
	}
	cells := make([]string, len(c.labels))
	for k, i := range c.labels {
		cells[k] = fields[i]
	}
	return joined(cells)
}

// joined returns the labels, separated by spaces. It returns "" if all are missing.
func joined(cells []string) (string, error) {
	if len(cells) == 1 {
		return cells[0], nil
	}
	out, some := make([]string, len(cells)), false
	for k, text := range cells {
		out[k], some = cmp.Or(text, unknown), some || text != ""
		if strings.ContainsAny(text, " ,\t") {
			return "", fmt.Errorf("label %q, want a number", text)
		}
	}
	if !some {
		return "", nil
	}
	return strings.Join(out, " "), nil
}
