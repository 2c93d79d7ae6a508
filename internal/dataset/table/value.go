package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// addValue adds the value of a row: a number, a text, nil, or a list of such values.
func (c *Column) addValue(where place, value any) error {
	if c.text {
		text, err := textOf(value)
		if err != nil {
			return c.fail(where, "%w", err)
		}
		c.Texts = append(c.Texts, text)
		return nil
	}
	list, isList := value.([]any)
	if c.gaps && (value == nil || isList && len(list) == 0) {
		return c.missing(where, "")
	}
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
func (c *Column) addList(where place, list []any) (shape []int, err error) {
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
		if i > 0 && !slices.Equal(of, inner) {
			return nil, c.fail(where, "element %d of a list is of shape %d, and others are of %d", i, of, inner)
		}
		inner = of
	}
	return append([]int{len(list)}, inner...), nil
}

func (c *Column) addScalar(where place, value any) error {
	switch v := value.(type) {
	case nil:
		if c.gaps { // in a list
			return c.addFloat(where, math.NaN())
		}
		return c.fail(where, "null, want a number")
	case json.Number:
		return c.add(where, v.String())
	case int64:
		c.addInt(v)
		return nil
	case bool:
		return c.add(where, strconv.FormatBool(v))
	case uint64:
		if int64(v) < 0 {
			return c.fail(where, "%d, want at most 64 bits with a sign", v)
		}
		c.addInt(int64(v))
		return nil
	case float32:
		return c.addFloat(where, float64(v))
	case float64:
		return c.addFloat(where, v)
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
	case int64, uint64:
		return fmt.Sprint(v), nil
	case float32:
		if math.IsNaN(float64(v)) {
			return "", nil
		}
		return strconv.FormatFloat(float64(v), 'g', -1, 32), nil
	case float64:
		if math.IsNaN(v) { // an empty cell of pandas
			return "", nil
		}
		return strconv.FormatFloat(v, 'g', -1, 64), nil
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
