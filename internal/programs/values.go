package programs

import (
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/swagwrap/swagwrap/internal/file"
)

// maxText bounds the settings and logs that are read.
const maxText = 4 << 20

// readJSON reads an object. It returns nil if the file is none.
func readJSON(path string) (v map[string]any) {
	if b, err := file.Read(path, maxText); err != nil || json.Unmarshal(b, &v) != nil {
		return nil
	}
	return v
}

// readYAML reads the plain values at the top of a YAML file: texts, numbers, booleans, and lists of them. Tags, anchors and
// aliases are left out, so that nothing is made of them.
func readYAML(path string) map[string]any {
	const most = 256 << 10
	b, err := file.Read(path, most)
	if err != nil {
		return nil
	}
	f, err := parser.ParseBytes(b, 0)
	if err != nil || len(f.Docs) == 0 {
		return nil
	}
	var pairs []*ast.MappingValueNode
	switch body := f.Docs[0].Body.(type) {
	case *ast.MappingNode:
		pairs = body.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{body}
	}
	out := map[string]any{}
	for _, p := range pairs {
		if key, ok := p.Key.(ast.ScalarNode); ok {
			if v := plainNode(p.Value); v != nil {
				out[key.GetToken().Value] = v
			}
		}
	}
	return out
}

func plainNode(n ast.Node) any {
	switch n := n.(type) {
	case *ast.StringNode:
		if v, err := strconv.ParseFloat(n.Value, 64); err == nil && n.Token.Value == n.Value { // 1e-4 is a text for YAML 1.2's readers
			return v
		}
		return n.Value
	case *ast.IntegerNode:
		v, err := strconv.ParseFloat(n.Token.Value, 64)
		if err == nil {
			return v
		}
	case *ast.FloatNode:
		return n.Value
	case *ast.BoolNode:
		return n.Value
	case *ast.SequenceNode:
		list := []any{}
		for _, item := range n.Values {
			v := plainNode(item)
			if _, nested := v.([]any); nested || v == nil {
				return nil
			}
			list = append(list, v)
		}
		return list
	case *ast.MappingNode:
		out := map[string]any{}
		for _, p := range n.Values {
			if key, ok := p.Key.(ast.ScalarNode); ok {
				if _, deeper := p.Value.(*ast.MappingNode); !deeper {
					out[key.GetToken().Value] = plainNode(p.Value)
				}
			}
		}
		return out
	}
	return nil
}

// readCSV reads the last number of each column of a table.
func readCSV(path string) map[string]any {
	b, err := file.Read(path, maxText)
	if err != nil {
		return nil
	}
	r := csv.NewReader(strings.NewReader(string(b)))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 2 {
		return nil
	}
	out := map[string]any{}
	for _, row := range rows[1:] {
		for i, cell := range row {
			if v, err := strconv.ParseFloat(strings.TrimSpace(cell), 64); err == nil && i < len(rows[0]) {
				out[strings.TrimSpace(rows[0][i])] = v
			}
		}
	}
	return out
}

// read reads a file of settings or figures by its suffix.
func read(path string) map[string]any {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		return readJSON(path)
	case ".yaml", ".yml":
		return readYAML(path)
	case ".csv":
		return readCSV(path)
	}
	return nil
}

// valueAt returns the value under nested keys, or nil.
func valueAt(v any, keys ...string) any {
	for _, key := range keys {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// numbersOf returns a number or a list of them.
func numbersOf(v any) (out []float64) {
	switch v := v.(type) {
	case float64:
		return []float64{v}
	case int64:
		return []float64{float64(v)}
	case []any:
		for _, item := range v {
			n := numbersOf(item)
			if len(n) != 1 {
				return nil
			}
			out = append(out, n[0])
		}
	}
	return out
}

// namesOf returns names by number. They are a list, or a dict from numbers to names.
func namesOf(v any) (names []string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			name, ok := item.(string)
			if !ok {
				return nil
			}
			names = append(names, name)
		}
	case map[string]any:
		for i := range len(v) {
			name, ok := v[strconv.Itoa(i)].(string)
			if !ok {
				return nil
			}
			names = append(names, name)
		}
	}
	return names
}

// readList reads a list of objects, or lines with an object each.
func readList(path string) (list []any) {
	b, err := file.Read(path, maxText)
	if err != nil || json.Unmarshal(b, &list) == nil {
		return list
	}
	for line := range strings.Lines(string(b)) {
		var v map[string]any
		if json.Unmarshal([]byte(line), &v) == nil {
			list = append(list, v)
		}
	}
	return list
}
