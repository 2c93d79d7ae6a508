package table

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxObject is the largest size of a line of JSON, in bytes. It is enough for a few million numbers.
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

// openJSON reads the names of the columns from the first object, in its order.
func (t *Table) openJSON(f *os.File, _ int64) error {
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
		t.Names = append(t.Names, name.(string))
		if err := d.Decode(new(json.RawMessage)); err != nil {
			return err
		}
	}
	t.read = t.readJSON
	return nil
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

func (t *Table) readJSON(f *os.File, _ int64, columns []*Column) (rows int, err error) {
	known := set(t.Names)
	err = objects(f, func(line int, object map[string]json.RawMessage) error {
		where := fmt.Sprintf("line %d", line)
		if len(object) != len(t.Names) {
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
			if !ok {
				return c.fail(where, "missing")
			}
			if err := c.addJSON(where, raw); err != nil {
				return err
			}
		}
		rows++
		return nil
	})
	return rows, err
}

// addJSON adds the value of a row.
func (c *Column) addJSON(where string, raw json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return c.fail(where, "%w", err)
	}
	if c.text {
		text, err := textOf(value)
		if err != nil {
			return c.fail(where, "%w", err)
		}
		c.Texts = append(c.Texts, text)
		return nil
	}
	list, isList := value.([]any)
	if first := c.Len() == 0 && c.Lengths == nil; !first && isList != (c.Lengths != nil) {
		return c.fail(where, "lists and numbers, want one of them")
	}
	if !isList {
		return c.addScalar(where, value)
	}
	if c.Lengths == nil {
		c.Lengths = []int{}
	}
	shape, err := c.addList(where, list)
	if err != nil {
		return err
	}
	if len(list) == 0 && len(c.Lengths) > 0 {
		shape = append(shape[:1], c.Inner...)
	}
	return c.shaped(where, shape)
}

// addList adds the numbers of a list, and returns its shape.
func (c *Column) addList(where string, list []any) (shape []int, err error) {
	var inner []int
	for i, v := range list {
		var of []int
		if below, ok := v.([]any); ok {
			of, err = c.addList(where, below)
		} else {
			err = c.addScalar(where, v)
		}
		if err != nil {
			return nil, err
		}
		if i > 0 && fmt.Sprint(of) != fmt.Sprint(inner) {
			return nil, c.fail(where, "element %d of a list is of shape %d, and others are of %d", i, of, inner)
		}
		inner = of
	}
	return append([]int{len(list)}, inner...), nil
}

func (c *Column) addScalar(where string, value any) error {
	switch v := value.(type) {
	case json.Number:
		return c.add(where, v.String())
	case bool:
		return c.add(where, fmt.Sprint(v))
	case nil:
		return c.fail(where, "null, want a number")
	}
	return c.fail(where, "%.40q, %w", fmt.Sprint(value), ErrText)
}

// textOf returns a value as text. The elements of a list are separated by spaces.
func textOf(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		if v {
			return "1", nil
		}
		return "0", nil
	case []any:
		var out []string
		for _, one := range v {
			text, err := textOf(one)
			if err != nil {
				return "", err
			}
			out = append(out, text)
		}
		return strings.Join(out, " "), nil
	}
	return "", errors.New("an object, want text or numbers")
}
