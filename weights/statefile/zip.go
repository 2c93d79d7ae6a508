package statefile

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

var (
	_ = register(format{suffixes: []string{".pt", ".pth", ".ckpt", ".bin", ".th"}, begins: func(_ string, head []byte) bool {
		return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
	}, read: func(f *File, path string, data []byte) error { return f.readPickle(path, data, openZip) }, origin: zipOrigin})
	// PyTorch before 0.4 kept its checkpoints in tar files.
	_ = register(format{suffixes: []string{".tar"}, begins: func(_ string, head []byte) bool {
		return len(head) > 512 && bytes.HasPrefix(head[257:], []byte("ustar"))
	}, read: func(*File, string, []byte) error {
		return &Error{What: "a tar file, in which PyTorch before 0.4 kept checkpoints, want one of 0.4 or later",
			Hint: "unpack it first, if the checkpoint is inside; or load and save it with a PyTorch between 0.4 and 1.13"}
	}})
	_ = register(format{begins: func(_ string, head []byte) bool {
		return len(head) > 1 && head[0] == opProto
	}, read: func(f *File, path string, data []byte) error {
		f.Legacy = true
		return f.readPickle(path, data, openLegacy)
	}})
)

// readPickle reads a file of torch.save.
func (f *File) readPickle(path string, data []byte, open func([]byte, *budget) (*container, error)) error {
	b := newBudget(len(data))
	c, err := open(data, b)
	if err != nil {
		return err
	}
	f.Origin = c.origin
	r := &rebuilder{path: path, c: c, budget: b, maxBytes: 2*int64(len(data)) + 32<<20, part: f.part}
	if f.dicts, err = r.search("", c.root, 0); err != nil {
		return err
	}
	f.nameLists()
	f.markAverages(c.root, r)
	f.refuseParts(c.root)
	f.Ignored = leftOver(c.root, f.dicts)
	f.Epoch = progress(c.root, epochKeys)
	f.Step = progress(c.root, stepKeys)
	f.Timm = timmModel(c.root)
	if f.Values = plainValues(c.root); c.settings != nil {
		var settings map[string]any
		if json.Unmarshal(c.settings, &settings) == nil {
			f.Values = map[string]any{tabNetSettings: settings}
		}
	}
	return nil
}

// A container holds a pickled object and, outside the pickle, the elements of its tensors.
type container struct {
	root      any
	records   map[string]record // by folder + storage key
	folder    string
	bigEndian bool
	origin    string // the entry of [Write]
	settings  []byte // of pytorch_tabnet, as JSON
}

// The files in a zip of pytorch_tabnet.
const (
	tabNetWeights  = "network.pt"
	tabNetSettings = "model_params.json"
)

// tabNet returns what the zip of pytorch_tabnet holds, or nil for another zip file. Its files are compressed.
func tabNet(z *zip.Reader, size int64) (network, settings []byte) {
	held := map[string][]byte{}
	for _, e := range z.File {
		if e.Name != tabNetWeights && e.Name != tabNetSettings || int64(e.UncompressedSize64) > 16*size+1<<20 {
			continue
		}
		r, err := e.Open()
		if err != nil {
			return nil, nil
		}
		held[e.Name], err = io.ReadAll(io.LimitReader(r, int64(e.UncompressedSize64)+1))
		if r.Close(); err != nil {
			return nil, nil
		}
	}
	if held[tabNetSettings] == nil || len(held[tabNetWeights]) == 0 {
		return nil, nil
	}
	return held[tabNetWeights], held[tabNetSettings]
}

// IsTabNet reports whether the file is a zip of pytorch_tabnet.
func IsTabNet(path string) bool {
	m, err := weights.Peek(path)
	if err != nil {
		return false
	}
	defer m.Close()
	is := false
	weights.Guarded(func() error {
		if z, err := zip.NewReader(&bounded{data: bytes.NewReader(m.Data), left: maxDirectory}, int64(len(m.Data))); err == nil {
			names := map[string]bool{}
			for _, e := range z.File {
				names[e.Name] = true
			}
			is = names[tabNetWeights] && names[tabNetSettings]
		}
		return nil
	})()
	return is
}

// maxDirectory bounds the bytes that are read from a zip file's directory. It allows about 80,000 tensors, for which
// archive/zip takes 50 MB.
const maxDirectory = 8 << 20

// A record is a range of a file.
type record struct {
	data []byte
	crc  uint32 // CRC-32 of data, 0 if the file has none
}

// damaged reports whether the bytes differ from those that were written.
func (r record) damaged() bool { return r.crc != 0 && crc32.ChecksumIEEE(r.data) != r.crc }

// openZip reads the format of PyTorch 1.6 and later. Its local headers hold no sizes, so only the central directory
// counts.
func openZip(data []byte, b *budget) (*container, error) { return openZipIn(data, b, false) }

// openZipIn is openZip, and within says that the file was in another zip file.
func openZipIn(data []byte, b *budget, within bool) (*container, error) {
	read := &bounded{data: bytes.NewReader(data), left: maxDirectory}
	z, err := zip.NewReader(read, int64(len(data)))
	if err != nil {
		return nil, &Error{
			What: "not a readable zip file",
			Err:  err,
			Hint: "is the file complete? PyTorch writes the zip file's directory last",
		}
	}
	read.left = -1
	if inner, settings := tabNet(z, int64(len(data))); inner != nil && !within {
		c, err := openZipIn(inner, b, true)
		if err == nil {
			c.settings = settings
		}
		return c, err
	}
	stem, err := zipStem(z)
	if err != nil {
		return nil, err
	}
	entries, err := zipEntries(z, data)
	if err == nil {
		err = b.spend(costName * int64(len(entries)))
	}
	if err != nil {
		return nil, &Error{What: "not a readable checkpoint", Err: err}
	}
	c := &container{records: entries, folder: stem + "data/"}
	switch order := string(entries[stem+"byteorder"].data); order {
	case "big":
		c.bigEndian = true
	case "", "little":
	default:
		return nil, &Error{What: fmt.Sprintf("byteorder %q, want little or big", shorten(order))}
	}
	pickle := entries[stem+"data.pkl"]
	if pickle.damaged() {
		return nil, &Error{What: "data.pkl: its CRC-32 differs: the file is damaged"}
	}
	if origin := entries[stem+originEntry]; len(origin.data) <= maxOrigin {
		c.origin = string(origin.data)
	}
	m := &machine{data: pickle.data, budget: b}
	if c.root, err = m.load(); err != nil {
		return nil, &Error{What: "data.pkl", Err: err}
	}
	return c, nil
}

// zipEntries returns the bytes of every entry. PyTorch never writes an entry that is compressed or shares bytes with
// another, so such an entry is an error.
func zipEntries(z *zip.Reader, data []byte) (map[string]record, error) {
	type place struct {
		name     string
		from, to int64
	}
	var places []place
	out := make(map[string]record, len(z.File))
	for _, f := range z.File {
		name := shorten(f.Name)
		if f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 {
			return nil, fmt.Errorf("entry %q: compressed, want it stored as PyTorch does", name)
		}
		if _, twice := out[f.Name]; twice {
			return nil, fmt.Errorf("entry %q: listed twice", name)
		}
		from, err := f.DataOffset()
		if err != nil {
			return nil, fmt.Errorf("entry %q: %w", name, err)
		}
		if from < 0 || from > int64(len(data)) || f.UncompressedSize64 > uint64(int64(len(data))-from) {
			return nil, fmt.Errorf("entry %q: %d bytes at byte %d of %d: truncated", name, f.UncompressedSize64, from, len(data))
		}
		to := from + int64(f.UncompressedSize64)
		out[f.Name] = record{data[from:to:to], f.CRC32}
		if from < to {
			places = append(places, place{name, from, to})
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(places); i++ {
		if a, b := places[i-1], places[i]; b.from < a.to {
			return nil, fmt.Errorf("entries %q and %q: share bytes", a.name, b.name)
		}
	}
	return out, nil
}

// zipStem returns the folder in the zip file that holds the checkpoint. It has the name of the file that was written
// first.
func zipStem(z *zip.Reader) (string, error) {
	var stems []string
	var numpy bool
	for _, f := range z.File {
		name := f.Name[strings.LastIndexByte(f.Name, '/')+1:]
		numpy = numpy || strings.HasSuffix(name, ".npy")
		switch name {
		case "constants.pkl":
			return "", &Error{What: "a TorchScript archive, want a state_dict",
				Hint: "in Python: torch.save(torch.jit.load(FILE, map_location=\"cpu\").state_dict(), NEW)"}
		case "data.pkl":
			stems = append(stems, strings.TrimSuffix(f.Name, name))
		}
	}
	switch {
	case len(stems) == 1:
		return stems[0], nil
	case len(stems) > 1:
		return "", &Error{What: fmt.Sprintf("%d entries data.pkl, want one", len(stems))}
	case numpy:
		return "", &Error{What: "a NumPy .npz file, want a checkpoint of PyTorch"}
	}
	return "", &Error{What: "a zip file without data.pkl, want a checkpoint of PyTorch",
		Hint: "unpack it first, if the checkpoint is inside; a torch.package archive must be saved as a state_dict"}
}

// bounded reads at most left bytes; a negative left is no bound.
type bounded struct {
	data io.ReaderAt
	left int64
}

var errDirectory = errors.New("its directory is larger than any checkpoint's")

func (r *bounded) ReadAt(p []byte, off int64) (int, error) {
	if r.left >= 0 {
		if int64(len(p)) > r.left {
			return 0, errDirectory
		}
		r.left -= int64(len(p))
	}
	return r.data.ReadAt(p, off)
}

// zipOrigin returns the entry of [Write] about the origin of a file.
func zipOrigin(m *weights.Mapping) string {
	z, err := zip.NewReader(&bounded{data: bytes.NewReader(m.Data), left: maxDirectory}, int64(len(m.Data)))
	if err != nil {
		return ""
	}
	for _, f := range z.File {
		from, err := f.DataOffset()
		if err == nil && strings.HasSuffix(f.Name, "/"+originEntry) && f.Method == zip.Store && f.UncompressedSize64 <= maxOrigin &&
			from >= 0 && from+int64(f.UncompressedSize64) <= int64(len(m.Data)) {
			return string(m.Data[from:][:f.UncompressedSize64])
		}
	}
	return ""
}

// legacyMagic is the number at the start of files of PyTorch 0.4 to 1.5, as a separate pickle.
var legacyMagic = long{0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19}

const legacyVersion = 1001

// openLegacy reads the format of PyTorch before 1.6, which later versions write on request. It consists of five
// pickles (the magic number, a version, facts about the machine, the object, the keys of its storages). Each storage
// follows, as a count and its elements. All numbers are little-endian, on big-endian machines too.
func openLegacy(data []byte, b *budget) (*container, error) {
	m := &machine{data: data, budget: b}
	magic, err := m.load()
	if err != nil || !is(magic, legacyMagic) {
		return nil, &Error{
			What: "a Python pickle, want a checkpoint that torch.save wrote",
			Err:  err,
			Hint: "in Python: torch.save(model.state_dict(), NEW)",
		}
	}
	load := func(what string) (v any) {
		if err == nil {
			if v, err = m.load(); err != nil {
				err = &Error{What: what, Err: err}
			}
		}
		return v
	}
	if version := load("version"); err == nil && version != any(int64(legacyVersion)) {
		return nil, &Error{What: fmt.Sprintf("version %s, want %d", describe(version), legacyVersion)}
	}
	load("facts about the machine")
	c := &container{root: load("object")}
	stored := m.persistent
	keys := load("keys of the storages")
	if err != nil {
		return nil, err
	}
	if c.records, err = legacyRecords(data[m.pos:], elements(keys), stored, b); err != nil {
		return nil, &Error{What: "not a readable checkpoint", Err: err}
	}
	return c, nil
}

// legacyRecords cuts the bytes after the pickles into storages. The object gives the size of an element.
func legacyRecords(data []byte, keys []any, stored []*persistent, b *budget) (map[string]record, error) {
	sizes := map[string]uint64{}
	for _, p := range stored {
		ref, ok := newReference(p)
		if !ok {
			continue
		}
		if _, seen := sizes[ref.key]; !seen { // the first counts, as in PyTorch
			if err := b.spend(2 * costName); err != nil { // the name stands in sizes and in records
				return nil, err
			}
			sizes[ref.key] = uint64(ref.kind.size)
		}
	}
	records := make(map[string]record, len(sizes))
	for _, k := range keys {
		key, ok := k.(text)
		size, known := sizes[string(key)]
		if !ok || !known {
			return nil, fmt.Errorf("storage %q: no tensor has it", shorten(string(key)))
		}
		if _, twice := records[string(key)]; twice {
			return nil, fmt.Errorf("storage %q: listed twice", shorten(string(key)))
		}
		if len(data) < 8 {
			return nil, fmt.Errorf("storage %q: %d bytes left: truncated", shorten(string(key)), len(data))
		}
		n := binary.LittleEndian.Uint64(data)
		data = data[8:]
		if n > uint64(len(data))/size {
			return nil, fmt.Errorf("storage %q: %d elements of %d bytes, %d bytes left: truncated", shorten(string(key)), n,
				size, len(data))
		}
		records[string(key)] = record{data: data[: n*size : n*size]}
		data = data[n*size:]
	}
	return records, nil
}
