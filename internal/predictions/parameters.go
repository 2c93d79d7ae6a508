package predictions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Parameters are everything that the rows of a result depend on. Two runs with equal parameters give equal rows. JSON
// stores them as an object.
type Parameters []Parameter

// Parameter is a name and its value in JSON.
type Parameter struct {
	Name  string
	Value json.RawMessage
}

// Add adds a parameter. It encodes the value as JSON.
func (p *Parameters) Add(name string, value any) error {
	js, err := json.Marshal(value)
	*p = append(*p, Parameter{name, js})
	return err
}

// Get returns the value of a parameter, or nil if there is none with that name.
func (p Parameters) Get(name string) json.RawMessage {
	if i := slices.IndexFunc(p, func(x Parameter) bool { return x.Name == name }); i >= 0 {
		return p[i].Value
	}
	return nil
}

// MarshalJSON writes an object, with its keys sorted.
func (p Parameters) MarshalJSON() ([]byte, error) {
	object := map[string]json.RawMessage{}
	for _, x := range p {
		object[x.Name] = x.Value
	}
	return json.Marshal(object)
}

// maxCount is the largest number of parameters in a file.
const maxCount = 1000

// UnmarshalJSON reads an object. It sorts the parameters by name. Of two values with the same name it keeps the last one.
func (p *Parameters) UnmarshalJSON(js []byte) error {
	*p = nil
	in := json.NewDecoder(bytes.NewReader(js))
	if start, err := in.Token(); err != nil || start == nil {
		return err // null means no parameters
	} else if start != json.Delim('{') {
		return fmt.Errorf("parameters: %v, want an object", start)
	}
	object := map[string]json.RawMessage{}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := in.Decode(&value); err != nil {
			return err
		}
		if object[name.(string)] = value; len(object) > maxCount {
			return fmt.Errorf("more than %d parameters", maxCount)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		*p = append(*p, Parameter{name, object[name]})
	}
	return nil
}

// Differences describes the parameters in now that differ from those in p.
func (p Parameters) Differences(now Parameters) []string {
	var out []string
	for _, x := range now {
		const telling = 600 // bytes; more would hide the rest
		switch was, is := compact(p.Get(x.Name)), compact(x.Value); {
		case was == is:
		case len(was)+len(is) > telling:
			out = append(out, x.Name+" is not what it was")
		default:
			out = append(out, fmt.Sprintf("%s was %s and is %s", x.Name, was, is))
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
