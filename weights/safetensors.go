package weights

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// Limits of the safetensors format.
const (
	maxHeader   = 100 << 20 // bytes of JSON, as in the reference reader
	headerAlign = 8         // data begins at a multiple of this
)

// metadataKey is the only name in a header that is not the name of a section.
const metadataKey = "__metadata__"

// Keys of __metadata__ that hold the checksums of a file written here. Both are optional for a reader, because files
// of other programs do not have them.
const (
	sectionSumsKey = "crc32c"        // JSON object: section name → eight hex digits
	headerSumKey   = "crc32c_header" // eight hex digits, over the header with these digits as zeros
)

// Section is one tensor of a safetensors file.
type Section struct {
	Name  string
	DType DType
	Shape []int64
}

func (s Section) bytes() int64 {
	n, _ := Elements(s.Shape)
	return n * s.DType.Size()
}

// A SafetensorsWriter writes a safetensors file. Its sections are known in advance and are filled part by part, in
// any interleaving. A fit produces one block of every section at a time, and of every row of some sections.
type SafetensorsWriter struct {
	w        io.WriterAt
	sections []Section
	metadata map[string]string
	starts   []int64       // file offset of each section
	rows     [][]*appender // the writers of each section; only one, unless Rows was called
}

// NewSafetensorsWriter plans the file and writes nothing yet. [SafetensorsWriter.Close] writes the header last,
// because it holds the checksums.
func NewSafetensorsWriter(w io.WriterAt, sections []Section, metadata map[string]string) (*SafetensorsWriter, error) {
	sw := &SafetensorsWriter{
		w:        w,
		sections: slices.Clone(sections),
		metadata: make(map[string]string),
		rows:     make([][]*appender, len(sections)),
	}
	maps.Copy(sw.metadata, metadata)
	seen := make(map[string]bool, len(sections))
	for _, s := range sections {
		if _, err := Elements(s.Shape); err != nil {
			return nil, fmt.Errorf("section %q: %w", s.Name, err)
		}
		if s.DType == Invalid || s.Name == metadataKey {
			return nil, fmt.Errorf("section %q: %v cannot be written under this name", s.Name, s.DType)
		}
		if seen[s.Name] {
			return nil, fmt.Errorf("section %q: listed twice", s.Name)
		}
		seen[s.Name] = true
	}
	header, err := sw.encodeHeader()
	if err != nil {
		return nil, err
	}
	if len(header) > maxHeader {
		return nil, fmt.Errorf("header of %d bytes: safetensors allows %d", len(header), maxHeader)
	}
	off := int64(8 + len(header))
	for i, s := range sections {
		sw.starts = append(sw.starts, off)
		off += s.bytes()
		sw.split(i, 1)
	}
	return sw, nil
}

// Section returns a writer that appends to section i, in the order of the
// list given to [NewSafetensorsWriter].
func (sw *SafetensorsWriter) Section(i int) io.Writer { return sw.rows[i][0] }

// Rows returns writers that append to the rows of section i, the slices of its first dimension. They may be used from
// different goroutines. Use either Rows or Section for a section.
func (sw *SafetensorsWriter) Rows(i int) []io.Writer {
	sw.split(i, sw.sections[i].Shape[0])
	var out []io.Writer
	for _, r := range sw.rows[i] {
		out = append(out, r)
	}
	return out
}

// split cuts section i into n rows of equal length.
func (sw *SafetensorsWriter) split(i int, n int64) {
	sw.rows[i] = nil
	for k := range n {
		size := sw.sections[i].bytes() / n
		sw.rows[i] = append(sw.rows[i], &appender{w: sw.w, name: sw.sections[i].Name, start: sw.starts[i] + k*size, size: size})
	}
}

// appender fills one range of a file.
type appender struct {
	w           io.WriterAt
	name        string // of the section
	start, size int64
	checksum
}

func (a *appender) Write(p []byte) (int, error) {
	if a.n+int64(len(p)) > a.size {
		return 0, fmt.Errorf("section %q: more data than its shape holds", a.name)
	}
	n, err := a.w.WriteAt(p, a.start+a.n)
	a.write(p[:n])
	return n, err
}

// Close checks that every section is full and writes the header.
func (sw *SafetensorsWriter) Close() error {
	for i, s := range sw.sections {
		if n := sw.sum(i).n; n != s.bytes() {
			return fmt.Errorf("section %q: %d of %d bytes written", s.Name, n, s.bytes())
		}
	}
	header, err := sw.encodeHeader()
	if err != nil {
		return err
	}
	setHeaderSum(header, CRC32C(0, header))
	if _, err := sw.w.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), 0); err != nil {
		return err
	}
	_, err = sw.w.WriteAt(header, 8)
	return err
}

// sum returns the checksum of the bytes of section i written so far.
func (sw *SafetensorsWriter) sum(i int) checksum {
	var sum checksum
	for _, r := range sw.rows[i] {
		sum = sum.then(r.checksum)
	}
	return sum
}

type headerEntry struct {
	DType   DType   `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// encodeHeader renders the JSON header with the current section sums and a header sum of zeros. Its length does not
// depend on the sums.
func (sw *SafetensorsWriter) encodeHeader() ([]byte, error) {
	meta := maps.Clone(sw.metadata)
	sums := map[string]string{}
	for i, s := range sw.sections {
		sums[s.Name] = fmt.Sprintf("%08x", sw.sum(i).sum)
	}
	js, err := json.Marshal(sums)
	if err != nil {
		return nil, err
	}
	meta[sectionSumsKey] = string(js)
	meta[headerSumKey] = "00000000"

	var b bytes.Buffer
	b.WriteString(`{"` + metadataKey + `":`)
	js, err = json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	b.Write(js)
	var off int64
	for _, s := range sw.sections {
		name, err := json.Marshal(s.Name)
		if err != nil {
			return nil, err
		}
		shape := append([]int64{}, s.Shape...) // [] and not null for a scalar
		js, err := json.Marshal(headerEntry{s.DType, shape, []int64{off, off + s.bytes()}})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",%s:%s", name, js)
		off += s.bytes()
	}
	b.WriteByte('}')
	for b.Len()%headerAlign != 0 {
		b.WriteByte(' ')
	}
	return b.Bytes(), nil
}

// headerSumAt returns the position of the eight digits of the header sum, or -1.
func headerSumAt(header []byte) int {
	mark := []byte(`"` + headerSumKey + `":"`)
	i := bytes.Index(header, mark)
	if i < 0 || i+len(mark)+8 > len(header) {
		return -1
	}
	return i + len(mark)
}

func setHeaderSum(header []byte, sum uint32) {
	copy(header[headerSumAt(header):], fmt.Sprintf("%08x", sum))
}

// Safetensors is an open safetensors file.
type Safetensors struct {
	Path     string
	Metadata map[string]string
	Sections []Section // in file order

	places  map[string]place
	body    []byte // all sections
	header  []byte
	mapping *Mapping
}

// place is the place of a section. It is small, since a file can have hundreds of thousands of sections.
type place struct {
	index int // of Sections
	from  int64
}

// OpenSafetensors maps the file at path and checks its header: size, JSON, duplicate keys, shapes, and offsets. The
// offsets must cover the data without holes or overlap. OpenSafetensors does not read the data; see
// [Safetensors.Verify].
func OpenSafetensors(path string) (*Safetensors, error) {
	m, err := Map(path)
	if err != nil {
		return nil, err
	}
	st, err := ParseSafetensors(path, m.Data)
	if err != nil {
		m.Close()
		return nil, err
	}
	st.mapping = m
	return st, nil
}

// ParseSafetensors is [OpenSafetensors] for bytes in memory; path is for
// error messages.
func ParseSafetensors(path string, data []byte) (*Safetensors, error) {
	st := &Safetensors{Path: path, Metadata: map[string]string{}}
	if err := st.parse(data); err != nil {
		return nil, fmt.Errorf("%s: not a readable safetensors file: %w", path, err)
	}
	return st, nil
}

// Close releases the mapping; views of the file are invalid afterwards.
func (st *Safetensors) Close() error {
	if st.mapping == nil {
		return nil
	}
	return st.mapping.Close()
}

// View returns the section named name.
func (st *Safetensors) View(name string) (View, bool) {
	p, ok := st.places[name]
	if !ok {
		return View{}, false
	}
	section := st.Sections[p.index]
	return View{section, st.body[p.from : p.from+section.bytes()]}, true
}

// HasChecksums reports whether the file was written with checksums.
func (st *Safetensors) HasChecksums() bool {
	return st.Metadata[sectionSumsKey] != "" && headerSumAt(st.header) >= 0
}

// Release gives the memory taken by reads back to the system: see [Mapping.Release].
func (st *Safetensors) Release() {
	if st.mapping != nil {
		st.mapping.Release()
	}
}

// verifyStretch is the number of bytes that Verify reads between calls of Release.
const verifyStretch = 64 << 20

// Verify checks header and sections against their checksums, reading the
// whole file. It fails on a file without checksums.
func (st *Safetensors) Verify() error { return Guarded(st.verify)() }

func (st *Safetensors) verify() error {
	if !st.HasChecksums() {
		return fmt.Errorf("%s: has no checksums", st.Path)
	}
	want := st.Metadata[headerSumKey]
	header := slices.Clone(st.header)
	setHeaderSum(header, 0)
	if got := fmt.Sprintf("%08x", CRC32C(0, header)); got != want {
		return fmt.Errorf("%s: header: checksum %s, want %s: the file is damaged", st.Path, got, want)
	}
	var sums map[string]string
	if err := json.Unmarshal([]byte(st.Metadata[sectionSumsKey]), &sums); err != nil {
		return fmt.Errorf("%s: checksums: %w", st.Path, err)
	}
	for _, s := range st.Sections {
		var sum checksum
		v, _ := st.View(s.Name)
		for stretch := range slices.Chunk(v.Data, verifyStretch) {
			sum.write(stretch)
			st.Release()
		}
		got := fmt.Sprintf("%08x", sum.sum)
		if got != sums[s.Name] {
			return fmt.Errorf("%s: section %q: checksum %s, want %s: the file is damaged", st.Path, s.Name, got, sums[s.Name])
		}
	}
	return nil
}

// ID identifies the file's content: the SHA-256 of its header, in hex. With
// checksums, the header holds the sums of all sections.
func (st *Safetensors) ID() string {
	sum := sha256.Sum256(st.header)
	return hex.EncodeToString(sum[:])
}

// View is a section and its elements in the file.
type View struct {
	Section
	Data []byte
}

// Len returns the number of elements.
func (v View) Len() int64 { return int64(len(v.Data)) / v.DType.Size() }

// Float64s decodes elements [off, off+len(dst)) of an F32 or F64 section.
func (v View) Float64s(dst []float64, off int64) {
	v.DType.Float64s(dst, v.Data[off*v.DType.Size():])
}

// Float32s decodes elements [off, off+len(dst)) of a float section.
func (v View) Float32s(dst []float32, off int64) {
	v.DType.Float32s(dst, v.Data[off*v.DType.Size():])
}

func (st *Safetensors) parse(data []byte) error {
	if len(data) < 8 {
		return fmt.Errorf("%d bytes: too short", len(data))
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader {
		return fmt.Errorf("header of %d bytes: safetensors allows %d", n, maxHeader)
	}
	if n > uint64(len(data)-8) {
		return fmt.Errorf("header of %d bytes in a file of %d: truncated", n, len(data))
	}
	st.header = data[8 : 8+n]
	if n == 0 || st.header[0] != '{' {
		return errors.New("header is not a JSON object")
	}
	body := data[8+n:]
	end, err := st.parseHeader(body)
	if err != nil {
		return err
	}
	if end != int64(len(body)) {
		return fmt.Errorf("sections end at byte %d of %d: truncated or with a tail", end, len(body))
	}
	return nil
}

// parseHeader reads the JSON token by token, since encoding/json would accept a duplicate key. It returns where the
// last section ends.
func (st *Safetensors) parseHeader(body []byte) (int64, error) {
	dec := json.NewDecoder(bytes.NewReader(st.header))
	if _, err := dec.Token(); err != nil {
		return 0, err
	}
	type placed struct {
		Section
		from, to int64
	}
	// Slices with enough room from the start take a fifth of the memory of slices that grow. least is the length of
	// the shortest JSON of a section.
	const least = len(`"":{"dtype":"F32","shape":[],"data_offsets":[0,0]}`)
	all := make([]placed, 0, min(bytes.Count(st.header, []byte(`"data_offsets"`)), len(st.header)/least))
	st.places = make(map[string]place, cap(all))
	metadata := false
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return 0, err
		}
		name := tok.(string)
		if _, twice := st.places[name]; twice || metadata && name == metadataKey {
			return 0, fmt.Errorf("section %q: listed twice", name)
		}
		if name == metadataKey {
			metadata = true
			if err := dec.Decode(&st.Metadata); err != nil {
				return 0, fmt.Errorf(metadataKey+": %w", err)
			}
			continue
		}
		var e headerEntry
		if err := dec.Decode(&e); err != nil {
			return 0, fmt.Errorf("section %q: %w", name, err)
		}
		n, err := Elements(e.Shape)
		if err != nil {
			return 0, fmt.Errorf("section %q: %w", name, err)
		}
		if e.DType == Invalid || e.Shape == nil || len(e.Offsets) != 2 {
			return 0, fmt.Errorf("section %q: wants dtype, shape and two data_offsets", name)
		}
		from, to := e.Offsets[0], e.Offsets[1]
		if from < 0 || to < from || to > int64(len(body)) {
			return 0, fmt.Errorf("section %q: bytes %d to %d of %d: truncated", name, from, to, len(body))
		}
		if n > math.MaxInt64/e.DType.Size() || to-from != n*e.DType.Size() {
			return 0, fmt.Errorf("section %q: %d bytes, want %d for %v %v", name, to-from, n*e.DType.Size(), e.DType, e.Shape)
		}
		all = append(all, placed{Section{name, e.DType, e.Shape}, from, to})
		st.places[name] = place{}
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return 0, err
	}
	if rest := strings.TrimRight(string(st.header[dec.InputOffset():]), " "); rest != "" {
		return 0, errors.New("header has text after its JSON object")
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) // empty sections first
	})
	st.Sections, st.body = make([]Section, 0, len(all)), body
	var end int64
	for _, p := range all {
		if p.from != end {
			return 0, fmt.Errorf("section %q: begins at byte %d, want %d: holes and overlaps are not allowed", p.Name, p.from, end)
		}
		end = p.to
		st.places[p.Name] = place{len(st.Sections), p.from}
		st.Sections = append(st.Sections, p.Section)
	}
	return end, nil
}
