package listing

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
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
	rows, left, err := indexTar(f, in.size, !l.unlabelled)
	if err != nil {
		return fmt.Errorf("%s: %w", in.path, err)
	}
	switch l.places.order {
	case fileorder.Text, fileorder.Number:
		fileorder.Sort(l.places.order, rows, func(r tarRow) string { return r.name })
	}
	at := len(l.examples)
	for _, r := range rows {
		in.entries = append(in.entries, entry{r.off, r.size})
		l.addExample(Example{in: in, name: r.name, at: int32(len(in.entries) - 1)}, r.name, label{text: r.label}, r.size)
	}
	l.places.files(in.path, fileorder.Archived, at, len(rows))
	for _, names := range left {
		for k := range names {
			names[k] = in.path + "/" + names[k]
		}
	}
	l.leaveKinds(left)
	return nil
}

// furtherPictures are pictures of a tar that belong to examples with another picture, such as 0001.seg.png beside 0001.jpg.
const furtherPictures = "further pictures of examples in a tar"

// isTar reports whether the first header has the magic number of a tar.
func isTar(head []byte) bool { return len(head) >= 262 && string(head[257:262]) == "ustar" }

// Limits on tars.
const (
	maxTarName   = 4096
	maxTarLabel  = 1 << 20 // bytes of a .json file, which may hold much else
	maxTarNumber = 256     // bytes of a .cls file
)

// A tarRow is an image of a tar, with its label or "".
type tarRow struct {
	name, label string
	off, size   int64
	part        string // what follows the first dot of an image such as 0001.seg.png; "" for 0001.png
}

// indexTar returns the images of a tar in its order, and the names of those that are left out. The label of an image is the
// text of its .cls file, or "label" in its .json file. All are "" if labels is false.
func indexTar(r io.ReaderAt, size int64, labels bool) (rows []tarRow, left map[string][]string, err error) {
	section := io.NewSectionReader(r, 0, size)
	t := tar.NewReader(section)
	e, parts := tarExample{}, tarParts{}
	var macs []string
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, file.Truncated(err)
		}
		at, _ := section.Seek(0, io.SeekCurrent) // the reader is at the beginning of the data
		key, rest := tarKey(h.Name)
		if macFile(path.Base(h.Name)) && hasExtension(h.Name, imageExtensions) && h.Typeflag == tar.TypeReg {
			macs = append(macs, h.Name)
		}
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse || key == "" {
			continue // folders, links, and names that begin with a dot
		}
		if len(h.Name) > maxTarName {
			return nil, nil, fmt.Errorf("%.40q...: a name of %d bytes, want at most %d", h.Name, len(h.Name), maxTarName)
		}
		if key != e.key {
			if rows, err = e.flush(rows, parts); err != nil {
				return nil, nil, err
			}
			e = tarExample{key: key}
		}
		if err := e.add(t, h, rest, at, size, labels); err != nil {
			return nil, nil, fmt.Errorf("%q: %w", h.Name, err)
		}
	}
	if rows, err = e.flush(rows, parts); err != nil {
		return nil, nil, err
	}
	if err := checkTarEnd(section); err != nil {
		return nil, nil, err
	}
	left = map[string][]string{}
	rows = slices.DeleteFunc(rows, func(r tarRow) bool {
		further := parts.further(r.part)
		if further {
			left[furtherPictures] = append(left[furtherPictures], r.name)
		}
		return further
	})
	if len(macs) > 0 {
		left[macFiles] = macs
	}
	if !slices.ContainsFunc(rows, func(r tarRow) bool { return hiddenPath(r.name) == "" }) {
		return rows, left, nil // the folder that was packed is hidden itself
	}
	rows = slices.DeleteFunc(rows, func(r tarRow) bool {
		kind := hiddenPath(r.name)
		if kind != "" {
			left[kind] = append(left[kind], r.name)
		}
		return kind != ""
	})
	return rows, left, nil
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
// one. rest begins with the dot.
func tarKey(name string) (key, rest string) {
	dir, base := path.Split(name)
	stem, rest, ok := strings.Cut(base, ".")
	if !ok || stem == "" {
		return "", ""
	}
	return dir + stem, "." + rest
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
