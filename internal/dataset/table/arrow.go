//go:build !noparquet

package table

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"

	"github.com/parquet-go/parquet-go"
)

// arrowField says what programs note about a column of a Parquet file, in addition to its schema.
type arrowField struct {
	duration bool // integers of Arrow's type Duration
	// categories says that the texts of a column are categories. ordered says that their order was chosen, and is not that in
	// which they occur. count is their number, or 0 if it is not noted.
	categories, ordered bool
	count               int
}

// arrowFields reads the notes of Arrow and of pandas on the columns of a file. Damaged notes count as none.
func arrowFields(p *parquet.File) map[string]arrowField {
	out := map[string]arrowField{}
	if text, ok := p.Lookup("ARROW:schema"); ok {
		if message, err := base64.StdEncoding.DecodeString(text); err == nil {
			for _, f := range schemaFields(message) {
				out[f.text(fieldName)] = arrowField{
					duration:   f.duration(0),
					categories: f.at(fieldDictionary) != nil,
					ordered:    f.at(fieldDictionary).bit(dictionaryOrdered),
				}
			}
		}
	}
	if text, ok := p.Lookup("pandas"); ok {
		notePandas(out, text)
	}
	return out
}

// notePandas adds what pandas notes about columns of categories. Their order is part of its type, even if they are not ordered.
func notePandas(out map[string]arrowField, text string) {
	var noted struct {
		Columns []struct {
			Name string `json:"field_name"`
			Type string `json:"pandas_type"`
			Meta struct {
				Count int `json:"num_categories"`
			} `json:"metadata"`
		} `json:"columns"`
	}
	if json.Unmarshal([]byte(text), &noted) != nil {
		return
	}
	for _, c := range noted.Columns {
		if c.Type == "categorical" {
			f := out[c.Name]
			f.categories, f.ordered, f.count = true, true, c.Meta.Count
			out[c.Name] = f
		}
	}
}

// Places of fields in the tables of Arrow's Message.fbs and Schema.fbs.
const (
	messageHeader     = 2
	schemaColumns     = 1
	fieldName         = 0
	fieldType         = 2
	fieldDictionary   = 4
	fieldChildren     = 5
	dictionaryOrdered = 2

	typeDuration = 18
)

// A flat is a table in FlatBuffers: a buffer, and the place of the table in it. Fields that are missing, or that lie outside of
// the buffer, are nil or 0.
type flat struct {
	b    []byte
	here int
}

// schemaFields returns the columns in a message of Arrow's IPC format.
func schemaFields(message []byte) []*flat {
	const marker = 0xffffffff
	skip := 4
	if u32(message, 0) == marker {
		skip = 8
	}
	if len(message) < skip+4 {
		return nil
	}
	b := message[skip:]
	root := &flat{b, int(u32(b, 0))}
	return root.at(messageHeader).list(schemaColumns)
}

func u32(b []byte, at int) uint32 {
	if at < 0 || at+4 > len(b) {
		return 0
	}
	return binary.LittleEndian.Uint32(b[at:])
}

func u16(b []byte, at int) int {
	if at < 0 || at+2 > len(b) {
		return 0
	}
	return int(binary.LittleEndian.Uint16(b[at:]))
}

// place returns the place of field i, or 0 if it is missing.
func (t *flat) place(i int) int {
	if t == nil {
		return 0
	}
	names := t.here - int(int32(u32(t.b, t.here)))
	if slot := 4 + 2*i; slot+2 <= u16(t.b, names) {
		if off := u16(t.b, names+slot); off != 0 {
			return t.here + off
		}
	}
	return 0
}

// at returns the table of field i.
func (t *flat) at(i int) *flat {
	p := t.place(i)
	if p == 0 || u32(t.b, p) == 0 {
		return nil
	}
	return &flat{t.b, p + int(u32(t.b, p))}
}

// list returns the tables of field i.
func (t *flat) list(i int) (out []*flat) {
	from := t.at(i)
	if from == nil {
		return nil
	}
	n := int(u32(from.b, from.here))
	for k := range min(n, len(from.b)/4) {
		p := from.here + 4 + 4*k
		out = append(out, &flat{from.b, p + int(u32(from.b, p))})
	}
	return out
}

func (t *flat) text(i int) string {
	from := t.at(i)
	if from == nil {
		return ""
	}
	begin := from.here + 4
	if n := int(u32(from.b, from.here)); n <= len(from.b)-begin {
		return string(from.b[begin:][:n])
	}
	return ""
}

func (t *flat) bit(i int) bool {
	p := t.place(i)
	return p > 0 && p < len(t.b) && t.b[p] != 0
}

// duration reports whether a column, or the elements of its lists, are durations.
func (t *flat) duration(depth int) bool {
	const deepest = 16
	if p := t.place(fieldType); p > 0 && p < len(t.b) && t.b[p] == typeDuration {
		return true
	}
	children := t.list(fieldChildren)
	return depth < deepest && len(children) == 1 && children[0].duration(depth+1)
}
