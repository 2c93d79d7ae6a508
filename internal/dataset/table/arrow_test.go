//go:build !noparquet

package table

import (
	"encoding/json"
	"testing"
)

// Damaged notes of Arrow count as none.
func FuzzSchemaFields(f *testing.F) {
	f.Add([]byte("\xff\xff\xff\xff\x10\x00\x00\x00\x10\x00\x00\x00"))
	f.Fuzz(func(_ *testing.T, message []byte) {
		for _, field := range schemaFields(message) {
			json.Marshal(field.text(fieldName))
			field.duration(0)
			field.at(fieldDictionary).bit(dictionaryOrdered)
		}
	})
}
