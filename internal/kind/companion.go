package kind

import (
	"path/filepath"

	"github.com/swagwrap/swagwrap/onnxio"
)

// DataOf returns the rule of [Written] for the data files of an exported model. Data files have no mark of their own. A data
// file is of this program if the model at path is, and names the file.
func DataOf(path string) func(data string) bool {
	return func(data string) bool {
		if marked(data) {
			return true
		}
		m, err := onnxio.Peek(path)
		if err != nil {
			return false
		}
		defer m.Close()
		if !exported(m) {
			return false
		}
		for _, name := range m.DataFiles() {
			if filepath.Join(filepath.Dir(path), filepath.FromSlash(name)) == filepath.Clean(data) {
				return true
			}
		}
		return false
	}
}
