package listing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/file"
)

// Bounds of a file with names. 22,000 classes of ImageNet take 0.5 MB, and vocabularies have up to a million words.
const (
	maxNamesBytes = 16 << 20
	maxNames      = 1 << 20
)

// ReadClassNames reads the names of the classes 0, 1, 2 ... from a file. The file has one name per line, or a JSON
// list, or a JSON object: see [namesOfObject]. For a folder with class folders, the names are those of the class folders, in
// torchvision's order.
func ReadClassNames(path string) ([]string, error) {
	if entries, err := os.ReadDir(path); err == nil {
		var names []string
		for _, e := range entries { // sorted
			if e.IsDir() && !hiddenFolder(e.Name()) {
				names = append(names, e.Name())
			}
		}
		if names == nil {
			err = fmt.Errorf("%s: has no class folders", path)
		}
		return names, err
	}
	b, err := file.Read(path, maxNamesBytes)
	if err != nil {
		return nil, err
	}
	names, err := parseClassNames(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if i := slices.Index(names, ""); i >= 0 {
		return nil, fmt.Errorf("%s: class %d has an empty name", path, i)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no class names, want one a line, a JSON list, or an object with id2label", path)
	}
	return names, nil
}

// ClassNamesOf returns the names of classes in the configuration of a model, which may be the preprocessing's: label_names
// of timm, or id2label of Hugging Face. It returns nil if there are none, or only the placeholders LABEL_0, LABEL_1 ….
func ClassNamesOf(path string) []string {
	b, err := file.Read(path, maxNamesBytes)
	if err != nil || !bytes.Contains(b, []byte(`"label_names"`)) && !bytes.Contains(b, []byte(`"id2label"`)) {
		return nil
	}
	names, err := parseClassNames(b)
	if err != nil || slices.Contains(names, "") || slices.ContainsFunc(names, func(s string) bool {
		return strings.HasPrefix(s, "LABEL_")
	}) {
		return nil
	}
	return names
}

func parseClassNames(b []byte) ([]string, error) {
	text := bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\ufeff")))
	if !bytes.Contains(text, []byte("\n")) {
		text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n")) // lines of the first Macintosh computers
	}
	var names []string
	switch {
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return nil, errors.New("not a text in UTF-8")
	case bytes.Count(text, []byte("\n")) >= maxNames || bytes.Count(text, []byte(",")) >= maxNames:
		return nil, fmt.Errorf("more than %d names, or commas", maxNames)
	case len(text) == 0:
		return nil, nil
	case text[0] == '[':
		if json.Unmarshal(text, &names) != nil {
			return nil, errors.New("a JSON list of other things than names, want [\"cat\", \"dog\"]")
		}
		return names, nil
	case text[0] != '{':
		for line := range strings.Lines(string(text)) {
			names = append(names, strings.TrimSpace(line))
		}
		return names, nil
	}
	return namesOfObject(text)
}
