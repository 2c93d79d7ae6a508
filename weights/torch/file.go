package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/swagwrap/swagwrap/weights"
)

// A File is an open checkpoint: one file, or one of several shards.
type File struct {
	Path string
	// Epoch and Step are what a training script has stored beside the weights,
	// -1 where there is nothing.
	Epoch, Step int64
	// Ignored is what the file holds beside its state_dicts.
	Ignored []Ignored

	dicts    []*StateDict
	mappings []*weights.Mapping
	part     bool // one of several shards
}

// Open opens the checkpoint at path: a file that torch.save wrote, whatever its
// extension; a safetensors file; an index of shards (*.index.json); or a folder
// in which Hugging Face keeps one of these. Errors are of type [*Error], or of
// the system or package weights.
//
// Not all that a file holds need be readable: what is wrong with one state_dict
// comes from [File.StateDict].
func Open(path string) (*File, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path, Epoch: -1, Step: -1}
	if fi.IsDir() {
		err = f.openFolder(path)
	} else {
		err = f.openFile(path)
	}
	if err := f.done(err); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Is reports whether the file or folder at path is of a kind that [Open] reads, or
// can say why it does not, by what it begins with.
func Is(path string) bool {
	if IsFolder(path) || strings.HasSuffix(path, indexSuffix) {
		return true
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a named pipe must not wait for a writer
	if err != nil {
		return false
	}
	defer f.Close()
	var head [513]byte
	n, err := io.ReadFull(f, head[:])
	data := head[:n]
	return n > 1 && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) &&
		(isZip(data) || isSafetensors(data) || isTar(data) || data[0] == opProto)
}

// Parse is [Open] for the bytes of one file in memory; path is for messages.
func Parse(path string, data []byte) (*File, error) {
	f := &File{Path: path, Epoch: -1, Step: -1}
	if err := f.done(f.parse(path, data)); err != nil {
		return nil, err
	}
	return f, nil
}

// done completes the error of opening f.
func (f *File) done(err error) error {
	if err == nil && len(f.dicts) == 0 && !f.part {
		err = f.nothing()
	}
	var e *Error
	if errors.As(err, &e) && e.Path == "" {
		e.Path = f.Path
	}
	return err
}

// StateDicts lists the state_dicts in the order of the file. There is at least
// one; its Err may say that it cannot be used.
func (f *File) StateDicts() []*StateDict { return f.dicts }

// StateDict returns the one with the given key; "" is the only one, if there is
// but one.
func (f *File) StateDict(key string) (*StateDict, error) {
	i := slices.IndexFunc(f.dicts, func(sd *StateDict) bool { return sd.Key == key })
	if i < 0 && key == "" && len(f.dicts) == 1 {
		i = 0
	}
	if i >= 0 && f.dicts[i].err != nil {
		return nil, f.dicts[i].err
	} else if i >= 0 {
		return f.dicts[i], nil
	}
	var names []string
	for _, sd := range f.dicts {
		names = append(names, sd.String())
	}
	what := fmt.Sprintf("%d state_dicts, want the key of one", len(f.dicts))
	if key != "" {
		what = fmt.Sprintf("no state_dict under %q", key)
	}
	return nil, &Error{Path: f.Path, What: what, Hint: "it has " + strings.Join(names, ", ")}
}

// Mappings returns the mapped files in the order of their paths. Close unmaps them.
func (f *File) Mappings() []*weights.Mapping {
	return slices.SortedFunc(slices.Values(f.mappings), func(a, b *weights.Mapping) int { return strings.Compare(a.Path, b.Path) })
}

// Release gives the memory that reads have taken back to the system: see
// [weights.Mapping.Release].
func (f *File) Release() {
	for _, m := range f.mappings {
		m.Release()
	}
}

// Close unmaps the file; what was read of it by [Tensor.Piece] and
// [Tensor.Bytes] is invalid afterwards.
func (f *File) Close() error {
	var errs []error
	for _, m := range f.mappings {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// nothing is the error of a file without a state_dict.
func (f *File) nothing() error {
	what := "holds no state_dict"
	for i, g := range f.Ignored {
		switch {
		case i == 0:
			what += ", but "
		case i == 8:
			return &Error{Path: f.Path, What: what + fmt.Sprintf(" and %d more", len(f.Ignored)-i), Hint: saveAgain}
		default:
			what += ", "
		}
		what += fmt.Sprintf("%q (%s)", shorten(g.Name), g.Why)
	}
	return &Error{Path: f.Path, What: what, Hint: saveAgain}
}

func (f *File) openFile(path string) error {
	m, err := weights.Map(path)
	if err != nil {
		return err
	}
	f.mappings = append(f.mappings, m)
	if strings.HasSuffix(path, indexSuffix) {
		return f.openIndex(path, m.Data)
	}
	return f.parse(path, m.Data)
}

// parse reads one file, by what it begins with.
func (f *File) parse(path string, data []byte) error {
	b := newBudget(len(data))
	var c *container
	var err error
	switch {
	case isZip(data):
		c, err = openZip(data, b)
	case isSafetensors(data):
		return f.parseSafetensors(path, data)
	case isTar(data):
		return &Error{What: "a tar file, in which PyTorch before 0.4 kept checkpoints, want one of 0.4 or later",
			Hint: "unpack it first, if the checkpoint is inside; or load and save it with a PyTorch between 0.4 and 1.13"}
	case len(data) > 1 && data[0] == opProto:
		c, err = openLegacy(data, b)
	default:
		return &Error{What: other(data) + ", want a checkpoint of PyTorch (.pt, .pth, .ckpt, .bin) or safetensors"}
	}
	if err != nil {
		return err
	}
	r := &rebuilder{path: path, c: c, budget: b, maxBytes: 2*int64(len(data)) + 32<<20, part: f.part}
	if f.dicts, err = r.search("", c.root, 0); err != nil {
		return err
	}
	f.Ignored = leftOver(c.root, f.dicts)
	f.Epoch = progress(c.root, epochKeys)
	f.Step = progress(c.root, stepKeys)
	return nil
}

// other says what a file is that is none of ours.
func other(data []byte) string {
	for magic, what := range map[string]string{
		"\x1f\x8b":                         "a gzip file",
		"version https://git-lfs":          "a pointer of Git LFS, whose file was not fetched (git lfs pull)",
		"\x89HDF\r\n":                      "an HDF5 file",
		"\x93NUMPY":                        "a NumPy array",
		"GGUF":                             "a GGUF file",
		"{":                                "a JSON file",
		"<":                                "a page of the web, or XML",
		"(":                                "a pickle of protocol 0",
		"\x00\x00\x00\x00\x00\x00\x00\x00": "zeros",
	} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return what
		}
	}
	if len(data) == 0 {
		return "empty"
	}
	return "a file of an unknown kind"
}

func isZip(data []byte) bool {
	return bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06"))
}

// isSafetensors reports whether data begins as a safetensors file: the length
// of a header, and the header.
func isSafetensors(data []byte) bool {
	return len(data) > 8 && data[8] == '{' && binary.LittleEndian.Uint64(data) < 1<<32
}
