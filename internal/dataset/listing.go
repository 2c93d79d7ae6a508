package dataset

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/truth"
)

// listing collects the examples of several inputs, in the order given.
type listing struct {
	examples []example
	labels   []label
	index    map[label]int32 // into labels
	sources  []Source
	sum      hash.Hash // of the input being listed

	strict     bool // a class folder must not be empty
	unlabelled bool // nobody wants to know what an input says of labels
	several    bool // a list may have a column for each of several labels

	spool *spool   // of commands; nil if none may run
	sizes []int64  // of the examples, if not nil
	empty []string // class folders without images that were passed over
	made  string   // the digest of the last listing that was an input
}

// label is a class as an input writes it.
type label struct {
	text   string
	folder bool // the name of a class folder, and never a number
}

// newListing returns a listing of nothing. In strict mode a class folder must not be
// empty, unless labels are not wanted.
func newListing(strict, unlabelled bool) *listing {
	return &listing{index: map[label]int32{}, strict: strict && !unlabelled, unlabelled: unlabelled}
}

func (o Options) newListing() *listing {
	l := newListing(o.ClassNames == nil, o.Unlabelled)
	l.several = o.Truth != truth.Classes
	if o.Pipes != nil {
		l.spool = newSpool(o.Pipes)
	}
	return l
}

// list lists what the inputs name: folders, tars, lists, listings, images, commands, and
// patterns for them.
func (l *listing) list(inputs []string) error {
	loose := false // the last source is of images named one by one
	for _, input := range inputs {
		paths, err := expand(input)
		if err != nil {
			return err
		}
		kinds := make([]kind, len(paths))
		for i, path := range paths {
			if kinds[i], err = kindOf(path); err != nil {
				return err
			}
		}
		single := len(paths) == 1 && kinds[0] == kindImage && paths[0] == input
		if !single || !loose {
			l.beginSource(input)
		}
		loose = single
		for i, path := range paths {
			if err := l.add(path, kinds[i]); err != nil {
				return err
			}
		}
		l.endSource()
		if len(paths) == 1 && kinds[0] == kindListing {
			l.sources[len(l.sources)-1].SHA256 = l.made
		}
	}
	if len(l.examples) == 0 {
		return fmt.Errorf("%s: no images, want some", inputs[0])
	}
	return nil
}

func (l *listing) add(path string, k kind) error {
	switch k {
	case kindFolder:
		return l.addFolder(path)
	case kindTar:
		return l.addTar(path)
	case kindList:
		return l.addList(path)
	case kindListing:
		in, err := filelist.Open(path)
		if err != nil {
			return err
		}
		l.made = in.SHA256
		return l.addListing(in, 0, in.Rows)
	case kindPipe:
		return l.addPipe(path)
	case kindImage:
		info, err := os.Stat(path)
		if err != nil {
			return file.Error(path, err)
		}
		l.addExample(example{name: path}, path, label{}, info.Size())
		return file.Listed(info)
	}
	return fmt.Errorf("%s: an array, want it as the only input", path)
}

// addExample adds an example, whose label has no text if there is none. Its name
// below the input, its size and its label go into the source's hash; the size is
// below 0 if there is no such file.
func (l *listing) addExample(e example, name string, v label, size int64) {
	fmt.Fprintf(l.sum, "%s\x00%d\x00%s\n", filepath.ToSlash(name), size, v.text)
	e.label = -1
	if v.text != "" {
		var ok bool
		if e.label, ok = l.index[v]; !ok {
			v.text = strings.Clone(v.text) // not the line it was a part of
			e.label = int32(len(l.labels))
			l.labels, l.index[v] = append(l.labels, v), e.label
		}
	}
	l.examples = append(l.examples, e)
	if l.sizes != nil {
		l.sizes = append(l.sizes, size)
	}
	l.sources[len(l.sources)-1].Files++
}

// beginSource starts the hash of an input; endSource notes it.
func (l *listing) beginSource(input string) {
	l.sources = append(l.sources, Source{Path: input, Kind: "listing"})
	l.sum = sha256.New()
}

func (l *listing) endSource() {
	l.sources[len(l.sources)-1].SHA256 = hex.EncodeToString(l.sum.Sum(nil))
}

// kind is what an input is.
type kind int

const (
	kindFolder kind = iota
	kindImage
	kindTar
	kindList
	kindArray
	kindListing
	kindPipe
)

// imageExtensions are torchvision's IMG_EXTENSIONS, and .gif.
var imageExtensions = []string{".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif"}

var listExtensions = []string{".txt", ".csv", ".tsv"}

func hasExtension(name string, of []string) bool {
	return slices.Contains(of, strings.ToLower(filepath.Ext(name)))
}

// kindOf tells what the file at path is. What is named like an image is not
// opened before its turn.
func kindOf(path string) (kind, error) {
	// Stat first: opening a FIFO would block.
	info, err := os.Stat(path)
	switch {
	case err != nil && isPipe(path):
		return kindPipe, nil
	case err != nil:
		return 0, file.Error(path, err)
	case info.IsDir():
		return kindFolder, nil
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%s: not a regular file, want images or arrays", path)
	case hasExtension(path, imageExtensions):
		return kindImage, nil
	case hasExtension(path, listExtensions):
		if head, err := headOf(path); err == nil && filelist.Is(head) {
			return kindListing, nil
		}
		return kindList, nil
	case hasExtension(path, []string{".tar"}):
		return kindTar, nil
	}
	k, err := kindOfContent(path)
	if err != nil {
		return 0, file.Error(path, err)
	}
	return k, nil
}

// headOf returns the first bytes of a file.
func headOf(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(filelist.Enough)))
}

// isPipe says that an input is a command, unless there is a file of that name: a shell
// may have put it in the place of a pattern.
func isPipe(input string) bool { return strings.HasPrefix(input, filelist.Pipe) }

// kindOfContent tells by first bytes what a file is whose name does not.
func kindOfContent(path string) (kind, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	const enough = 512 // a tar's first header
	head, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil {
		return 0, err
	}
	switch {
	case isTar(head):
		return kindTar, nil
	case filelist.Is(head):
		return kindListing, nil
	case picture.Known(head):
		return kindImage, nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(io.MultiReader(bytes.NewReader(head), f))
		if err != nil {
			break // numpy.Open says what is wrong
		}
		if inside, _ := io.ReadAll(io.LimitReader(z, enough)); isTar(inside) {
			return 0, errors.New("a compressed tar, and images are read from where they lie in it: unpack it with gunzip")
		}
	case !numpy.Known(head):
		const want = "want images (JPEG PNG WebP GIF BMP TIFF), a folder or a tar of them, a list of them (" +
			".txt .csv .tsv), or a .npy, .npz or IDX file"
		if len(head) == 0 {
			return 0, errors.New("empty, " + want)
		}
		return 0, fmt.Errorf("starts with %q, %s", head[:min(len(head), 6)], want)
	}
	return kindArray, nil
}

// expand returns the paths that an input names: itself if there is such a file,
// else what its numbered ranges {000..010} and its wildcards * ? [] stand for.
func expand(input string) ([]string, error) {
	if _, err := os.Lstat(input); err == nil {
		return []string{input}, nil
	}
	ranges, err := expandRanges(input)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", input, err)
	}
	if isPipe(input) {
		return ranges, nil
	}
	var paths []string
	for _, p := range ranges {
		if !strings.ContainsAny(p, "*?[") {
			paths = append(paths, p)
			continue
		}
		if strings.Contains(p, "**") {
			return nil, fmt.Errorf("%s: ** is not understood: name the folder itself", input)
		}
		found, err := filepath.Glob(p) // sorted within each folder
		if err != nil {
			return nil, fmt.Errorf("%s: %w", input, err)
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: no file matches", p)
		}
		slices.Sort(found)
		paths = append(paths, found...)
	}
	return paths, nil
}

var numberRange = regexp.MustCompile(`\{(\d{1,9})\.\.(\d{1,9})\}`)

// maxRange bounds the files that an input's ranges may stand for.
const maxRange = 1 << 20

// expandRanges expands {000..010} as shells do, zeros included.
func expandRanges(s string) ([]string, error) {
	at := numberRange.FindStringSubmatchIndex(s)
	if at == nil {
		return []string{s}, nil
	}
	tails, err := expandRanges(s[at[1]:])
	if err != nil {
		return nil, err
	}
	from, to := s[at[2]:at[3]], s[at[4]:at[5]]
	lo, _ := strconv.Atoi(from) // digits only
	hi, _ := strconv.Atoi(to)
	if lo > hi || (hi-lo+1)*len(tails) > maxRange {
		return nil, fmt.Errorf("range {%s..%s}, want it to go upwards and to make at most %d names", from, to, maxRange)
	}
	var out []string
	for v := lo; v <= hi; v++ {
		for _, tail := range tails {
			out = append(out, fmt.Sprintf("%s%0*d%s", s[:at[0]], len(from), v, tail))
		}
	}
	return out, nil
}
