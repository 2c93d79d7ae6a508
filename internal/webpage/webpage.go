// Package webpage writes a folder with a static page that runs an exported ensemble in a browser. Nothing is sent anywhere:
// the page, the model, ONNX Runtime and the code that reads pictures and tables all lie in the folder.
//
// The folder inputs has that code. Its WebAssembly is built before the program (make web) and embedded. A program that was
// built without it, such as by go install, has no page: [ErrNotBuilt].
//
// # Invariants
//
// Names of classes, columns and files reach the page as data, never as markup.
package webpage

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/swagwrap/swagwrap/internal/webpage/inputs"
)

// The folder page has the page itself, and what make web adds to it.
//
//go:embed page
var embedded embed.FS

// ErrNotBuilt is the error of a program that was built without the page's WebAssembly.
var ErrNotBuilt = errors.New("this build of the program has no code for browsers in it")

// A Page says what the page shows.
type Page struct {
	Title string `json:"title"`
	// Model is the name of the model's file, and Bytes its size.
	Model string `json:"model"`
	Bytes int64  `json:"bytes"`
	// Task is classes, binary, labels or regression. Names are those of classes, labels or targets.
	Task      string   `json:"task"`
	Names     []string `json:"names"`
	Threshold float64  `json:"threshold,omitempty"` // of binary, on the probability of class 1
	Members   int      `json:"members"`
	// Calibration, Guarantee and Preprocessing are sentences.
	Calibration   string         `json:"calibration,omitempty"`
	Guarantee     string         `json:"promise,omitempty"`
	Preprocessing []string       `json:"preprocessing,omitempty"`
	Network       inputs.Network `json:"network"`
	// Producer and Runtime are programs with their versions. Module and Assembly are the files of the runtime.
	Producer string `json:"producer"`
	Runtime  string `json:"runtime"`
	Module   string `json:"module"`
	Assembly string `json:"assembly"`
}

// Files returns the names and the content of all files but the model and the runtime.
func (p Page) Files() (map[string][]byte, error) { return p.files(embedded) }

// built are the files that make web adds. The first is compressed.
var built = []string{"inputs.wasm.gz", "wasm_exec.js"}

// Built returns ErrNotBuilt if the program has no WebAssembly.
func Built() error { return complete(embedded) }

func complete(from fs.FS) error {
	for _, name := range built {
		if _, err := fs.Stat(from, path.Join("page", name)); err != nil {
			return ErrNotBuilt
		}
	}
	return nil
}

func (p Page) files(from fs.FS) (map[string][]byte, error) {
	err := p.Network.Check()
	if err == nil {
		err = complete(from)
	}
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	entries, err := fs.ReadDir(from, "page")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		content, err := fs.ReadFile(from, path.Join("page", e.Name()))
		if err != nil {
			return nil, err
		}
		all[e.Name()] = content
	}
	unpacked, err := unpack(all[built[0]])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", built[0], err)
	}
	delete(all, built[0])
	all["inputs.wasm"] = unpacked
	js, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return nil, err
	}
	all["page.json"] = append(js, '\n')
	return all, nil
}

func unpack(packed []byte) ([]byte, error) {
	gz, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(gz)
}
