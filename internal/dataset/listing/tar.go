package listing

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
)

// addTar adds the images of a tar in the layout of WebDataset. The files of one example are consecutive. Their names
// are equal up to the first dot of the last path element, such as 0001.jpg and 0001.cls. Only headers and labels are
// read. An image is read on demand.
func (l *Listing) addTar(path string) error {
	f, size, err := file.Open(path, "a tar")
	if err != nil {
		return file.Error(path, err)
	}
	defer f.Close()
	return l.addTarFile(&place{path: path, tar: true, size: size}, f)
}

// addTarFile adds the images of an open tar.
func (l *Listing) addTarFile(in *place, f io.ReaderAt) error {
	err := indexTar(f, in.size, !l.unlabelled, func(name, class string, off, size int64) {
		in.entries = append(in.entries, entry{off, size})
		l.addExample(Example{in: in, name: strings.Clone(name), at: int32(len(in.entries) - 1)}, name, label{text: class}, size)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", in.path, err)
	}
	return nil
}

// isTar reports whether the first header has the magic number of a tar.
func isTar(head []byte) bool { return len(head) >= 262 && string(head[257:262]) == "ustar" }

// Limits on tars.
const (
	maxTarName   = 4096
	maxTarLabel  = 1 << 20 // bytes of a .json file, which may hold much else
	maxTarNumber = 256     // bytes of a .cls file
)

// tarExample is the example whose files are being read.
type tarExample struct {
	key       string
	image     string
	off, size int64
	cls, json string
}

// indexTar calls row for each example with an image, in the order of the tar. label is the text of its .cls file, or
// "label" in its .json file, or "". It is "" for all examples if labels is false.
func indexTar(r io.ReaderAt, size int64, labels bool, row func(name, label string, off, size int64)) error {
	section := io.NewSectionReader(r, 0, size)
	t := tar.NewReader(section)
	var e tarExample
	flush := func() {
		if e.image != "" {
			row(e.image, cmp.Or(e.cls, e.json), e.off, e.size)
		}
	}
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			flush()
			return checkTarEnd(section)
		}
		if err != nil {
			return file.Truncated(err)
		}
		at, _ := section.Seek(0, io.SeekCurrent) // the reader is at the beginning of the data
		key, ext := tarKey(h.Name)
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse || key == "" {
			continue // folders, links, and names that begin with a dot
		}
		if len(h.Name) > maxTarName {
			return fmt.Errorf("%.40q...: a name of %d bytes, want at most %d", h.Name, len(h.Name), maxTarName)
		}
		if key != e.key {
			flush()
			e = tarExample{key: key}
		}
		if (ext == ".cls" || ext == ".json") && !labels {
			continue
		}
		if err := e.add(t, h, ext, at, size); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
}

// checkTarEnd checks that the last block is empty. The end of the file also counts as the end of the tar.
func checkTarEnd(section *io.SectionReader) error {
	at, _ := section.Seek(0, io.SeekCurrent) // cannot fail
	var block [512]byte
	if n, _ := section.ReadAt(block[:], max(at-512, 0)); n < len(block) || block != [512]byte{} {
		return errors.New("truncated: it does not end in an empty block, as a tar does")
	}
	return nil
}

// tarKey splits a name at the first dot of its last path element. key is "" if this element has no dot or begins with
// one.
func tarKey(name string) (key, ext string) {
	dir, base := path.Split(name)
	stem, ext, ok := strings.Cut(base, ".")
	if !ok || stem == "" {
		return "", ""
	}
	return dir + stem, "." + strings.ToLower(ext)
}

// add adds one file of the example. Its data is at offset off of a tar with the given size.
func (e *tarExample) add(t *tar.Reader, h *tar.Header, ext string, off, size int64) error {
	switch {
	case hasExtension(ext, imageExtensions) && strings.Count(ext, ".") == 1:
		if e.image != "" {
			return fmt.Errorf("a second image of example %q, besides %q, want one", e.key, e.image)
		}
		if sparse(h) {
			return errors.New("a sparse file, want its bytes in one piece")
		}
		if h.Size > size-off {
			return file.Truncated(io.ErrUnexpectedEOF)
		}
		e.image, e.off, e.size = h.Name, off, h.Size
	case ext == ".cls":
		b, err := readAtMost(t, maxTarNumber)
		if err != nil {
			return err
		}
		if e.cls = strings.TrimSpace(string(b)); e.cls == "" {
			return errors.New("empty, want a class")
		}
	case ext == ".json":
		b, err := readAtMost(t, maxTarLabel)
		if err != nil {
			return err
		}
		if e.json, err = jsonLabel(b); err != nil {
			return err
		}
	}
	return nil
}

// sparse reports whether the file has holes, which the tar leaves out.
func sparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for k := range h.PAXRecords {
		if strings.HasPrefix(k, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func readAtMost(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, file.Truncated(err)
	}
	if int64(len(b)) > most {
		return nil, fmt.Errorf("longer than %d bytes", most)
	}
	return b, nil
}

// jsonLabel returns the number or string "label" of a JSON object, or "".
func jsonLabel(b []byte) (string, error) {
	var object struct {
		Label json.RawMessage `json:"label"`
	}
	if err := json.Unmarshal(b, &object); err != nil {
		return "", err
	}
	raw := bytes.TrimSpace(object.Label)
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		err := json.Unmarshal(raw, &text)
		return text, err
	case strings.IndexByte("{[tf", raw[0]) >= 0:
		return "", fmt.Errorf("label %.40s, want a number or a string", raw)
	}
	return string(raw), nil
}
