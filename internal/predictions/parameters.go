package predictions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Parameters are what the rows of a result depend on. Two runs with equal
// parameters give equal rows. In JSON they are an object.
type Parameters []Parameter

// Parameter is one of them.
type Parameter struct {
	Name  string
	Value json.RawMessage
}

// Add adds a parameter, whose value is turned into JSON.
func (p *Parameters) Add(name string, value any) error {
	js, err := json.Marshal(value)
	*p = append(*p, Parameter{name, js})
	return err
}

// Get returns the value of a parameter, or nil if it is not among them.
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

// UnmarshalJSON reads an object. The parameters are in the order of their names.
func (p *Parameters) UnmarshalJSON(js []byte) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(js, &object); err != nil {
		return err
	}
	*p = nil
	for _, name := range slices.Sorted(maps.Keys(object)) {
		*p = append(*p, Parameter{name, object[name]})
	}
	return nil
}

// Differences says in words which of the parameters now differ from p's.
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

// compact returns JSON without spaces: a file for people has some.
func compact(js json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, js) != nil {
		return string(js)
	}
	return b.String()
}

// ChangedError says that rows were made with other parameters.
type ChangedError struct {
	Path        string
	Differences []string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: was begun with other parameters: %s", e.Path, strings.Join(e.Differences, "; "))
}
