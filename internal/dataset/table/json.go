package table

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// maxObject is the largest size of a line of JSON or of a row of CSV, in bytes. It is enough for a few million numbers.
const maxObject = 64 << 20

// objects calls row with the line number and the values of each object.
func objects(f io.Reader, row func(line int, object map[string]json.RawMessage) error) error {
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxObject)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(text) == 0 {
			continue
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := row(n, object); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: longer than %d bytes, want an object in each line", n+1, maxObject)
	}
	return lines.Err()
}

// openJSON reads the names of the columns from the first object, in its order, or from all objects if there may be gaps.
func (t *Table) openJSON(f *io.SectionReader) error {
	t.read = t.readJSON
	if t.gaps {
		return t.openObjects(f)
	}
	err := objects(f, func(line int, _ map[string]json.RawMessage) error {
		return io.EOF // the first line is an object
	})
	if err == nil {
		return errors.New("empty, want an object in each line")
	}
	if err != io.EOF {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	d := json.NewDecoder(bufio.NewReader(skipMark(f)))
	if _, err := d.Token(); err != nil { // {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		t.Names, t.Lists = append(t.Names, name.(string)), append(t.Lists, bytes.HasPrefix(value, []byte("[")))
	}
	return nil
}

// openObjects reads the names of the columns from all objects. A column has lists if any of its cells is one.
func (t *Table) openObjects(f *io.SectionReader) error {
	at := map[string]int{}
	err := objects(f, func(_ int, object map[string]json.RawMessage) error {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			if _, known := at[name]; !known {
				at[name] = len(t.Names)
				t.Names, t.Lists = append(t.Names, name), append(t.Lists, false)
			}
			if bytes.HasPrefix(object[name], []byte("[")) {
				t.Lists[at[name]] = true
			}
		}
		return nil
	})
	if err == nil && t.Names == nil {
		err = errors.New("empty, want an object in each line")
	}
	return err
}

// skipMark returns a reader that skips a byte order mark.
func skipMark(f io.Reader) io.Reader {
	const mark = "\ufeff"
	start := make([]byte, len(mark))
	n, _ := io.ReadFull(f, start)
	if start = start[:n]; string(start) == mark {
		return f
	}
	return io.MultiReader(bytes.NewReader(start), f)
}

func (t *Table) readJSON(f *io.SectionReader, columns []*Column) (rows int, err error) {
	known := set(t.Names)
	err = objects(f, func(line int, object map[string]json.RawMessage) error {
		where := place{"line", line}
		if len(object) != len(t.Names) && !t.gaps {
			for name := range object {
				if !known[name] {
					return fmt.Errorf("%s: %q is not among the first line's", where, name)
				}
			}
		}
		for _, c := range columns {
			if c == nil {
				continue
			}
			raw, ok := object[c.Name]
			var err error
			if ok {
				err = c.addJSON(where, raw)
			} else {
				err = c.missing(where, "missing")
			}
			if err != nil {
				return err
			}
		}
		rows++
		return nil
	})
	return rows, err
}

// addJSON adds the value of a row.
func (c *Column) addJSON(where place, raw json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return c.fail(where, "%w", err)
	}
	return c.addValue(where, value)
}
