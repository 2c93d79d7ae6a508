package filelist

import (
	"bufio"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/cell"
)

// columns are those of a CSV file.
var columns = []string{"path", "name", "offset", "size", "file_size", "label", "error"}

// writeCSV writes the head with the digest of what follows, and that.
func writeCSV(w io.Writer, h Head, rows iter.Seq[*Row]) error {
	sum := sha256.New()
	if err := writeRows(sum, rows); err != nil {
		return err
	}
	h.Content = hex.EncodeToString(sum.Sum(nil))
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", mark, text); err != nil {
		return err
	}
	return writeRows(w, rows)
}

func writeRows(w io.Writer, rows iter.Seq[*Row]) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	number := func(n int64) string { // of what may be nothing
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	for r := range rows {
		err := out.Write([]string{cell.Guard(r.Path), cell.Guard(r.Name), number(r.Offset), strconv.FormatInt(r.Size, 10), number(r.FileSize), cell.Guard(r.Label), cell.Guard(r.Error)})
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

// eachCSV reads all rows, and calls each with some. What was changed since it was
// written is an error once all is read.
func (l *Listing) eachCSV(r io.Reader, first, end int, each func(*Row) error) error {
	sum := sha256.New()
	in := csv.NewReader(bufio.NewReaderSize(io.TeeReader(r, sum), 1<<20))
	in.ReuseRecord, in.FieldsPerRecord = true, len(columns)
	changed := func(err error) error {
		return fmt.Errorf("was changed since swagwrap list wrote it (%w): make it again; without its first line it is a plain list", err)
	}
	if header, err := in.Read(); err != nil || !slices.Equal(header, columns) {
		return changed(errors.New("other columns"))
	}
	var rows int
	var failed error // is told if the file is what was written
	for ; ; rows++ {
		fields, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return changed(err)
		}
		if rows < first || rows >= end || failed != nil {
			continue
		}
		var row Row
		if row, failed = parse(fields); failed == nil {
			failed = each(&row)
		}
	}
	if rows != l.Rows || hex.EncodeToString(sum.Sum(nil)) != l.Content {
		return changed(errors.New("another SHA-256"))
	}
	return failed
}

// parse reads a row, whose texts are its own.
func parse(fields []string) (Row, error) {
	text := func(i int) string { return strings.Clone(cell.Bare(fields[i])) }
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
			return r, fmt.Errorf("%s %q, want a number", columns[x.at], fields[x.at])
		}
		*x.to = n
	}
	return r, nil
}
