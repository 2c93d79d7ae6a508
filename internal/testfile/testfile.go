// Package testfile reads the files that tests compare results with. Most of them hold what Python computed.
package testfile

import (
	"encoding/json"
	"os"
	"testing"
)

// JSON decodes a file into v. It ends the test if the file cannot be read.
func JSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
