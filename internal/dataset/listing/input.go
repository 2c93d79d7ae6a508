package listing

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// Kind is the kind of an input.
type Kind int

const (
	KindFolder Kind = iota
	KindImage
	KindTar
	KindList
	KindArray
	KindListing
	KindPipe
)

// imageExtensions are those of image files.
var imageExtensions = picture.Extensions()

// ListExtensions are the extensions of lists.
var ListExtensions = []string{".txt", ".csv", ".tsv"}

func hasExtension(name string, of []string) bool {
	return slices.Contains(of, strings.ToLower(filepath.Ext(name)))
}

// unzipped returns a path without the extension of gzip.
func unzipped(path string) string {
	if hasExtension(path, []string{".gz"}) {
		return path[:len(path)-len(".gz")]
	}
	return path
}

// KindOf returns the kind of the file at path. It does not open a file with the name of an image.
func KindOf(path string) (Kind, error) {
	k, f, err := Open(path)
	if f != nil {
		f.Close()
	}
	return k, err
}

// Open is [KindOf], and returns the open file if it holds arrays. The caller closes it.
func Open(path string) (Kind, *os.File, error) {
	// Call Stat first, because opening a FIFO would block.
	info, err := os.Stat(path)
	switch {
	case err != nil && isPipe(path):
		return KindPipe, nil, nil
	case err != nil:
		return 0, nil, file.Error(path, err)
	case info.IsDir():
		return KindFolder, nil, nil
	case !info.Mode().IsRegular():
		return 0, nil, fmt.Errorf("%s: not a regular file, want images or arrays", path)
	case hasExtension(path, imageExtensions):
		return KindImage, nil, nil
	case hasExtension(unzipped(path), ListExtensions):
		return KindList, nil, nil
	case hasExtension(path, []string{".tar"}):
		return KindTar, nil, nil
	}
	f, _, err := file.Regular(path)
	if err != nil {
		return 0, nil, file.Error(path, err)
	}
	k, err := kindOfContent(f)
	if err != nil || k != KindArray {
		f.Close()
		return k, nil, file.Error(path, err)
	}
	return k, f, nil
}

// isPipe reports whether an input is a command. The caller must first check that no file has this name: a shell may
// have expanded a pattern to it.
func isPipe(input string) bool { return strings.HasPrefix(input, filelist.Pipe) }

// kindOfContent returns the kind of a file by its first bytes.
func kindOfContent(f io.ReaderAt) (Kind, error) {
	const enough = 512 // a tar's first header
	head, err := io.ReadAll(io.NewSectionReader(f, 0, enough))
	if err != nil {
		return 0, err
	}
	switch {
	case isTar(head):
		return KindTar, nil
	case filelist.Is(head):
		return KindListing, nil
	case picture.Known(head):
		return KindImage, nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(io.NewSectionReader(f, 0, 1<<62))
		if err != nil {
			break // numpy.Open returns the error
		}
		if inside, _ := io.ReadAll(io.LimitReader(z, enough)); isTar(inside) {
			return 0, errors.New("a compressed tar, and images are read from where they lie in it: unpack it with gunzip")
		}
	case !numpy.Known(head):
		want := "want images (" + strings.Join(picture.Formats(), " ") + "), a folder or a tar of them, a list of them (" +
			strings.Join(ListExtensions, " ") + "), or a .npy, .npz or IDX file"
		if len(head) == 0 {
			return 0, errors.New("empty, " + want)
		}
		return 0, fmt.Errorf("starts with %q, %s", head[:min(len(head), 6)], want)
	}
	return KindArray, nil
}

// Expand returns the paths that an input stands for. If a file has the name input, it is the only path. Otherwise
// Expand replaces numbered ranges {000..010} and the wildcards * ? [].
func Expand(input string) ([]string, error) {
	x, err := expand(input, fileorder.Text)
	return x.paths, err
}

// expanded is what an input stands for.
type expanded struct {
	paths  []string
	sorted [][2]int            // the begin and end of paths that were sorted by their names
	hidden map[string][]string // paths that are left out, by their kind
}

func expand(input string, order fileorder.Order) (x expanded, err error) {
	if _, err := os.Lstat(input); err == nil {
		return expanded{paths: []string{input}}, nil
	}
	ranges, err := expandRanges(input)
	if err != nil {
		return x, fmt.Errorf("%s: %w", input, err)
	}
	if isPipe(input) {
		return expanded{paths: ranges}, nil
	}
	x.hidden = map[string][]string{}
	for _, p := range ranges {
		if !strings.ContainsAny(p, "*?[") {
			x.paths = append(x.paths, p)
			continue
		}
		if strings.Contains(p, "**") {
			return x, fmt.Errorf("%s: ** is not understood: name the folder itself", input)
		}
		found, err := filepath.Glob(p) // sorted within each folder
		if err != nil {
			return x, fmt.Errorf("%s: %w", input, err)
		}
		found = slices.DeleteFunc(found, func(path string) bool {
			kind := hiddenMatch(p, path)
			if kind != "" {
				x.hidden[kind] = append(x.hidden[kind], path)
			}
			return kind != ""
		})
		if len(found) == 0 {
			return x, fmt.Errorf("%s: no file matches", p)
		}
		fileorder.Sort(order, found, filepath.ToSlash)
		x.sorted = append(x.sorted, [2]int{len(x.paths), len(x.paths) + len(found)})
		x.paths = append(x.paths, found...)
	}
	return x, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

var numberRange = regexp.MustCompile(`\{(\d{1,9})\.\.(\d{1,9})\}`)

// maxRange is the largest number of files that the ranges of an input may stand for.
const maxRange = 1 << 20

// expandRanges expands {000..010} as shells do, and keeps leading zeros.
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
