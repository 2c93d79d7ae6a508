package kind

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/onnxio"
)

// Marker is the name of a file in each folder that the program fills with files of many names, such as maps and figures.
// The program may replace the files of such a folder.
const Marker = ".swagwrap"

// Written reports whether this program wrote the file at path. It is the rule for --force: a file that somebody else made is
// never replaced. An empty file counts as written, because it holds nothing. If Written cannot decide, it reports false.
func Written(path string) bool {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return true
	}
	if marked(path) {
		return true
	}
	switch is := Detect(path); is {
	case Posterior, Ensemble, Settings, Calibration, ScorePart, WorkFile, StoreEntry, Predictions:
		return true
	case Model, Checkpoint:
		return Exported(path)
	case Unknown:
		head, _ := begin(path)
		return bytes.HasPrefix(head, []byte(records.Magic)) // it is a work file of another version
	case Page:
		return begins(path, `<meta name="generator" content="swagwrap">`)
	case Sidecar:
		return begins(path, `"program": "swagwrap `)
	case Data:
		data, err := listing.KindOf(path)
		return err == nil && data == listing.KindListing || numpy.Signed(path)
	}
	return false
}

// marked reports whether the file is in a folder that the program fills.
func marked(path string) bool {
	_, err := os.Lstat(filepath.Join(filepath.Dir(path), Marker))
	return err == nil
}

// Array is the rule of [Written] for an array, which has no room for a mark. The caller replaces such a file by the same bytes
// only.
func Array(path string) bool {
	head, _ := begin(path)
	return bytes.HasPrefix(head, []byte("\x93NUMPY")) || Written(path)
}

// begins reports whether the beginning of a file has the words.
func begins(path, words string) bool {
	head, _ := begin(path)
	return bytes.Contains(head, []byte(words))
}

// IsTensors reports whether the file is one of this program in the format safetensors: a posterior or an ensemble.
func IsTensors(path string) bool {
	_, metadata := begin(path)
	return ours[metadata["kind"]] != ""
}

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
