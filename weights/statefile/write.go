package statefile

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

// An Entry is a tensor of a state_dict that is written.
type Entry struct {
	Name  string
	DType weights.DType
	Shape []int64
	// Of is the name of an earlier entry that this one shares its elements with, as tied weights do. It is "" for an entry
	// with elements of its own.
	Of string
	// Elements writes the elements, little-endian in row-major order.
	Elements func(w io.Writer) error
}

// Bytes returns the number of bytes of the elements.
func (e Entry) Bytes() int64 {
	n, _ := weights.Elements(e.Shape)
	return n * e.DType.Size()
}

// The places of what a file says of its origin. Readers of PyTorch and of safetensors pass over both.
const (
	originEntry = "swagwrap.json"    // of a zip file
	originKey   = "swagwrap"         // of the metadata of a safetensors file
	averageKey  = "swagwrap.average" // the same: what shows that the weights are an average
	maxOrigin   = 16 << 20
)

// Write writes a state_dict as torch.save does. torch.load reads it with weights_only=True. folder is the name of the folder
// in the zip file, which is usually that of the file without its extension. origin is JSON that says what the file is, or "".
// Elements are written one entry after the other, so that memory does not grow with the network.
func Write(w io.Writer, folder string, entries []Entry, origin string) error {
	z := &zipWriter{count: &counter64{w: w}, folder: folder}
	z.zip = zip.NewWriter(z.count)
	keys := storageKeys(entries)
	small := []struct {
		name string
		data []byte
	}{
		{"data.pkl", pickleOf(entries, keys)},
		{".format_version", []byte("1")},
		{".storage_alignment", []byte(fmt.Sprint(alignment))},
		{"byteorder", []byte("little")},
	}
	for _, f := range small {
		if err := z.add(f.name, func(w io.Writer) error { _, err := w.Write(f.data); return err }); err != nil {
			return err
		}
	}
	for i, e := range entries {
		if e.Of != "" {
			continue
		}
		if err := z.add(fmt.Sprintf("data/%d", keys[i]), sized(e)); err != nil {
			return err
		}
	}
	if origin != "" {
		if err := z.add(originEntry, func(w io.Writer) error { _, err := io.WriteString(w, origin); return err }); err != nil {
			return err
		}
	}
	if err := z.add("version", func(w io.Writer) error { _, err := io.WriteString(w, "3\n"); return err }); err != nil {
		return err
	}
	return z.zip.Close()
}

// storageKeys numbers the storages of the entries. Entries that share their elements have one storage.
func storageKeys(entries []Entry) []int {
	keys, byName, next := make([]int, len(entries)), make(map[string]int), 0
	for i, e := range entries {
		if e.Of != "" {
			keys[i] = byName[e.Of]
			continue
		}
		keys[i] = next
		byName[e.Name] = next
		next++
	}
	return keys
}

// sized returns the function that writes the elements of e. It fails if they are not as many as the shape says.
func sized(e Entry) func(io.Writer) error {
	return func(w io.Writer) error {
		count := &counter64{w: w}
		b := bufio.NewWriterSize(count, 1<<16)
		err := e.Elements(b)
		if err == nil {
			err = b.Flush()
		}
		if err == nil && count.n != e.Bytes() {
			err = fmt.Errorf("tensor %q: %d bytes written, want %d", e.Name, count.n, e.Bytes())
		}
		return err
	}
}

// A counter64 counts the bytes that go through it.
type counter64 struct {
	w io.Writer
	n int64
}

func (c *counter64) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// alignment is the multiple at which PyTorch lets the elements of each storage begin. A mapped file then needs no copies.
const alignment = 64

// A zipWriter writes the entries of a checkpoint, uncompressed and aligned.
type zipWriter struct {
	zip    *zip.Writer
	count  *counter64
	folder string
	// descriptor is the number of bytes that end the last entry. They are written with the next one.
	descriptor int64
}

// add writes one entry. Padding before its data stands in an extra field of the header, as PyTorch writes it.
func (z *zipWriter) add(name string, write func(io.Writer) error) error {
	if err := z.zip.Flush(); err != nil {
		return err
	}
	name = z.folder + "/" + name
	const header, field = 30, 4
	pad := (alignment - (z.count.n+z.descriptor+header+int64(len(name))+field)%alignment) % alignment
	extra := append([]byte("FB"), byte(pad), byte(pad>>8))
	extra = append(extra, bytes.Repeat([]byte("Z"), int(pad))...)
	w, err := z.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Extra: extra})
	if err != nil {
		return err
	}
	data := &counter64{w: w}
	if err := write(data); err != nil {
		return err
	}
	z.descriptor = 16
	if data.n >= math.MaxUint32 {
		z.descriptor = 24 // with 64-bit sizes
	}
	return nil
}

// storageClasses names the class of PyTorch's storages for each type.
var storageClasses = map[weights.DType]string{
	weights.F32:  "FloatStorage",
	weights.F64:  "DoubleStorage",
	weights.F16:  "HalfStorage",
	weights.BF16: "BFloat16Storage",
	weights.I64:  "LongStorage",
	weights.I32:  "IntStorage",
	weights.I16:  "ShortStorage",
	weights.I8:   "CharStorage",
	weights.U8:   "ByteStorage",
	weights.Bool: "BoolStorage",
}

// pickleOf returns the pickle of an OrderedDict with the entries. It holds what torch.save would write, without memo.
func pickleOf(entries []Entry, keys []int) []byte {
	p := &pickler{}
	p.op(opProto, 2)
	p.orderedDict()
	for i := 0; i < len(entries); i += setItems {
		p.op(opMark)
		for k, e := range entries[i:min(len(entries), i+setItems)] {
			p.text(e.Name)
			p.tensor(e, keys[i+k])
		}
		p.op(opSetItems)
	}
	p.op(opStop)
	return p.Bytes()
}

// setItems is the number of items that Python's pickler sets at a time.
const setItems = 1000

// A pickler writes the few operations of a pickle that state_dicts need.
type pickler struct{ bytes.Buffer }

func (p *pickler) op(code ...byte) { p.Write(code) }

func (p *pickler) global(module, name string) {
	p.op(opGlobal)
	p.WriteString(module + "\n" + name + "\n")
}

func (p *pickler) orderedDict() {
	p.global("collections", "OrderedDict")
	p.op(opEmptyTuple, opReduce)
}

func (p *pickler) text(s string) {
	p.op(opBinUnicode)
	p.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(s))))
	p.WriteString(s)
}

func (p *pickler) int(n int64) {
	if n >= 0 && n <= 0xff {
		p.op(opBinInt1, byte(n))
		return
	}
	if n == int64(int32(n)) {
		p.op(opBinInt)
		p.Write(binary.LittleEndian.AppendUint32(nil, uint32(n)))
		return
	}
	p.op(opLong1, 8)
	p.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func (p *pickler) ints(all []int64) {
	p.op(opMark)
	for _, n := range all {
		p.int(n)
	}
	p.op(opTuple)
}

// tensor writes _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks).
func (p *pickler) tensor(e Entry, key int) {
	n, _ := weights.Elements(e.Shape)
	p.global("torch._utils", "_rebuild_tensor_v2")
	p.op(opMark)
	p.op(opMark)
	p.text("storage")
	p.global("torch", storageClasses[e.DType])
	p.text(fmt.Sprint(key))
	p.text("cpu")
	p.int(n)
	p.op(opTuple, opBinPersID)
	p.int(0)
	p.ints(e.Shape)
	p.ints(contiguous(e.Shape))
	p.op(opNewFalse)
	p.orderedDict()
	p.op(opTuple, opReduce)
}

// contiguous returns the strides of a row-major array, in elements.
func contiguous(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	for i, n := len(strides)-1, int64(1); i >= 0; i-- {
		strides[i], n = n, n*max(1, shape[i])
	}
	return strides
}

// WriteSafetensors writes a state_dict in the format safetensors. metadata are texts of the file, such as "format", or nil.
// origin is as for [Write]. Entries that share their elements are written twice, because the format has no such entries.
func WriteSafetensors(w io.WriterAt, entries []Entry, metadata map[string]string, origin string) error {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int { return int(b.DType.Size() - a.DType.Size()) }) // so that all are aligned
	elements := make(map[string]func(io.Writer) error, len(entries))
	sections := make([]weights.Section, len(sorted))
	for i, e := range sorted {
		sections[i] = weights.Section{Name: e.Name, DType: e.DType, Shape: e.Shape}
		elements[e.Name] = e.Elements
	}
	all := maps.Clone(metadata)
	if all == nil {
		all = map[string]string{"format": "pt"}
	}
	maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, "crc32c") })
	if delete(all, originKey); origin != "" {
		all[originKey] = origin
	}
	sw, err := weights.NewSafetensorsWriter(w, sections, all)
	if err != nil {
		return err
	}
	for i, e := range sorted {
		if e.Of != "" {
			e.Elements = elements[e.Of]
		}
		b := bufio.NewWriterSize(sw.Section(i), 1<<16)
		if err := e.Elements(b); err != nil {
			return err
		}
		if err := b.Flush(); err != nil {
			return err
		}
	}
	return sw.Close()
}
