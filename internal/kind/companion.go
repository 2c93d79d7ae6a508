package kind

import (
	"path/filepath"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
)

// DataOf returns the rule of [Written] for the data files of an exported model. Data files have no mark of their own. A data
// file is of this program if the model at path is, and names the file.
func DataOf(path string) func(data string) bool {
	return func(data string) bool { return marked(data) || slices.Contains(DataFiles(path), filepath.Clean(data)) }
}

// DataFiles returns the paths of the data files that an exported model names, or none for a file that this program did not export.
func DataFiles(path string) (list []string) {
	m, err := onnxio.Peek(path)
	if err != nil {
		return nil
	}
	defer m.Close()
	if !exported(m) {
		return nil
	}
	for _, name := range m.DataFiles() {
		list = append(list, filepath.Join(filepath.Dir(path), filepath.FromSlash(name)))
	}
	return list
}
