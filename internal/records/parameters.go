package records

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Parameters are everything that the rows of a result depend on, as JSON values by name. Two runs with equal parameters
// give equal rows.
type Parameters map[string]json.RawMessage

// NewParameters encodes the values as JSON.
func NewParameters(values map[string]any) (Parameters, error) {
	p := Parameters{}
	for name, value := range values {
		js, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		p[name] = js
	}
	return p, nil
}

// Differences describes the parameters in now that differ from those in p.
func (p Parameters) Differences(now Parameters) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		const telling = 600 // bytes; more would hide the rest
		switch was, is := compact(p[name]), compact(now[name]); {
		case was == is:
		case len(was)+len(is) > telling:
			out = append(out, name+" is not what it was")
		default:
			out = append(out, fmt.Sprintf("%s was %s and is %s", name, was, is))
		}
	}
	return out
}

// compact returns JSON without spaces, which files for people contain.
func compact(js json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, js) != nil {
		return string(js)
	}
	return b.String()
}

// ChangedError is the error for rows that were made with other parameters.
type ChangedError struct {
	Path        string
	Differences []string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: was begun with other parameters: %s", e.Path, strings.Join(e.Differences, "; "))
}
