package listing

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
)

// tarExample has the images and labels whose names are equal up to the first dot. Usually that is one image. In a tar that
// was not written for WebDataset, the images scan.0001.png and scan.0002.png are there too.
type tarExample struct {
	key    string
	images []tarRow
	stems  map[string]string    // the images by their names without extensions
	labels map[string]*tarLabel // by the name without its extension
}

// tarLabel has what .cls and .json files say.
type tarLabel struct {
	cls, json string
	err       error // why one of them cannot be read
}

// add adds one file of the example. rest is its name from the first dot. Its data is at offset off of a tar with the given
// size.
func (e *tarExample) add(t *tar.Reader, h *tar.Header, rest string, off, size int64, labels bool) error {
	ext := strings.ToLower(path.Ext(rest))
	stem := strings.TrimSuffix(h.Name, path.Ext(h.Name))
	part := ""
	if strings.Count(rest, ".") > 1 {
		part = strings.ToLower(rest)
	}
	switch {
	case slices.Contains(imageExtensions, ext):
		if other := e.stems[stem]; other != "" {
			return fmt.Errorf("a second image of example %q, besides %q, want one", stem, other)
		}
		if sparse(h) {
			return errors.New("a sparse file, want its bytes in one piece")
		}
		if h.Size > size-off {
			return file.Truncated(io.ErrUnexpectedEOF)
		}
		if e.stems == nil {
			e.stems = map[string]string{}
		}
		e.stems[stem] = h.Name
		e.images = append(e.images, tarRow{name: strings.Clone(h.Name), off: off, size: h.Size, part: part})
	case labels && (ext == ".cls" || ext == ".json"):
		if e.labels == nil {
			e.labels = map[string]*tarLabel{}
		}
		l := e.labels[stem]
		if l == nil {
			l = &tarLabel{}
			e.labels[stem] = l
		}
		err := l.read(t, ext)
		if part != "" && err != nil { // no image may need it
			l.err, err = fmt.Errorf("%q: %w", h.Name, err), nil
		}
		return err
	}
	return nil
}

func (l *tarLabel) read(t *tar.Reader, ext string) (err error) {
	most := int64(maxTarNumber)
	if ext == ".json" {
		most = maxTarLabel
	}
	b, err := readAtMost(t, most)
	if err != nil {
		return err
	}
	if ext == ".json" {
		l.json, err = jsonLabel(b)
		return err
	}
	if l.cls = strings.TrimSpace(string(b)); l.cls == "" {
		return errors.New("empty, want a class")
	}
	return nil
}

// flush appends the images to rows, with their labels. An image such as clip.0001.png has the label of clip.0001.cls. Without
// it, the label is that of clip.cls, unless that belongs to clip.png.
func (e *tarExample) flush(rows []tarRow, parts tarParts) ([]tarRow, error) {
	plain := slices.ContainsFunc(e.images, func(r tarRow) bool { return r.part == "" })
	for _, r := range e.images {
		l := e.labels[strings.TrimSuffix(r.name, path.Ext(r.name))]
		if r.part != "" {
			parts.count(r.part, plain, l != nil)
		}
		if l == nil && !plain {
			l = e.labels[e.key]
		}
		if l != nil {
			if l.err != nil {
				return nil, l.err
			}
			r.label = cmp.Or(l.cls, l.json)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// tarParts counts images with several dots in their names, by what follows the first dot.
type tarParts map[string]*tarPart

type tarPart struct {
	images, beside int  // images, and those beside an image of one dot
	labelled       bool // one of the images has a label of its own
}

func (p tarParts) count(part string, beside, labelled bool) {
	of := p[part]
	if of == nil {
		of = &tarPart{}
		p[part] = of
	}
	of.images++
	if beside {
		of.beside++
	}
	of.labelled = of.labelled || labelled
}

// further reports whether images with this part are further pictures of examples, such as the masks 0001.seg.png beside
// 0001.jpg. Such a part is a word, and each of its images is beside another one. All other images are examples of their own:
// scan.0001.png, and 0001.v2.png with its own 0001.v2.cls.
func (p tarParts) further(part string) bool {
	of := p[part]
	if part == "" || of.labelled || of.beside < of.images {
		return false
	}
	return of.images > 1 || !strings.ContainsAny(part[:strings.LastIndexByte(part, '.')], "0123456789")
}
