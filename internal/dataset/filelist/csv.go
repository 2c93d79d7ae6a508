package filelist

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/csvsafe"
)

// columns are the columns of a CSV file.
var columns = []string{"path", "name", "offset", "size", "file_size", "label", "error"}

// writeCSV writes the head as a comment, and the rows.
func writeCSV(w io.Writer, h Head, rows iter.Seq[*Row]) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", mark, text); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	number := func(n int64) string { // 0 means missing
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	for r := range rows {
		if strings.Contains(r.Path+r.Name+r.Label+r.Error, "\r\n") { // readers take it for a line end
			return fmt.Errorf("%q: cannot be in a .csv, want a .parquet", r.Name)
		}
		err := out.Write([]string{csvsafe.Guard(r.Path), csvsafe.Guard(r.Name), number(r.Offset), strconv.FormatInt(r.Size, 10), number(r.FileSize), csvsafe.Guard(r.Label), csvsafe.Guard(r.Error)})
		if err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func csvHead(f io.ReaderAt, size int64) (text string, rest int64, err error) {
	line, err := bufio.NewReader(io.NewSectionReader(f, 0, min(size, maxHead))).ReadString('\n')
	if err != nil {
		return "", 0, errors.New("damaged: its first line has no end")
	}
	text, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), mark)
	if !ok {
		return "", 0, errors.New("no listing that swagwrap list made")
	}
	return text, int64(len(line)), nil
}

// eachCSV calls each with the rows in [first, end).
func (l *Listing) eachCSV(r io.Reader, first, end int, each func(*Row) error) error {
	in := csv.NewReader(bufio.NewReaderSize(r, 1<<20))
	in.ReuseRecord, in.FieldsPerRecord = true, len(columns)
	if header, err := in.Read(); err != nil || !slices.Equal(header, columns) {
		return errChanged
	}
	for at := 0; ; at++ {
		if at == end && end < l.Rows {
			return nil
		}
		fields, err := in.Read()
		switch {
		case err == io.EOF:
			return nil // Each checks the number of rows
		case err != nil || at >= l.Rows:
			return errChanged
		case at < first:
			continue
		}
		row, err := parse(fields)
		if err == nil {
			err = each(&row)
		}
		if err != nil {
			return err
		}
	}
}

// parse reads a row. Its texts do not share memory with fields.
func parse(fields []string) (Row, error) {
	text := func(i int) string { return strings.Clone(csvsafe.Bare(fields[i])) }
	r := Row{Path: text(0), Name: text(1), Label: text(5), Error: text(6)}
	for _, x := range []struct {
		to *int64
		at int
	}{{&r.Offset, 2}, {&r.Size, 3}, {&r.FileSize, 4}} {
		if fields[x.at] == "" && x.to != &r.Size {
			continue
		}
		n, err := strconv.ParseInt(fields[x.at], 10, 64)
		if err != nil {
			return r, errChanged
		}
		*x.to = n
	}
	return r, nil
}
