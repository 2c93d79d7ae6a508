package onnxio

import (
	"os"

	"github.com/swagwrap/swagwrap/onnxio/internal/wire"
	"github.com/swagwrap/swagwrap/weights"
)

// NewLayout is that of package checkpoints, which cannot be imported here.
var NewLayout func(models []*Model) (*weights.Layout, error)

// ParseFiles is [Parse] with the contents of the model's data files, by their
// location.
func ParseFiles(path string, data []byte, files map[string][]byte) (*Model, error) {
	m, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	err = m.attach(func(location string) (wire.Content, error) {
		if b, ok := files[location]; ok {
			return wire.ContentOf(b), nil
		}
		return wire.Content{}, os.ErrNotExist
	})
	return m, err
}
