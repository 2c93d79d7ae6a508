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

// Differences describes how the parameters in now differ from those in p. Some runs have no value of a name, such as one without a
// threshold: that is a difference, too.
func (p Parameters) Differences(now Parameters) []string {
	all := Parameters{}
	maps.Copy(all, now)
	maps.Copy(all, p)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		const telling = 600 // bytes; more would hide the rest
		switch was, is := value(p[name]), value(now[name]); {
		case was == is:
		case len(was)+len(is) > telling:
			out = append(out, name+" is not what it was")
		default:
			out = append(out, fmt.Sprintf("%s was %s and is %s", name, was, is))
		}
	}
	return out
}

// value returns a value as messages show it.
func value(js json.RawMessage) string {
	if js == nil {
		return "absent"
	}
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
