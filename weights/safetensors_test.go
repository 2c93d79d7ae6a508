package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

var update = flag.Bool("update", false, "write testdata/ours.safetensors anew; run testdata/make.py afterwards")

// memory is a file in memory.
type memory []byte

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if end := off + int64(len(p)); end > int64(len(*m)) {
		*m = append(*m, make([]byte, end-int64(len(*m)))...)
	}
	return copy((*m)[off:], p), nil
}

// The content of ours.safetensors: types, a scalar, an empty section, and
// names and values that JSON escapes.
var (
	ourSections = []Section{
		{"mean", F64, []int64{3}},
		{"deviations", F32, []int64{2, 2}},
		{"half", F16, []int64{2}},
		{"brain", BF16, []int64{1}},
		{"graph", U8, []int64{5}},
		{"none", F32, []int64{0, 3}},
		{"steps", I64, nil},
		{`"näme" <&>`, Bool, []int64{2}},
	}
	ourData = [][]byte{
		f64s(0.1, -2, 1e300), f32s(F32, 1, -2.5, 0, 3e38), f32s(F16, 0.5, -65504), f32s(BF16, 3), []byte("graph"), {},
		binary.LittleEndian.AppendUint64(nil, 1<<40), {1, 0},
	}
	ourMetadata = map[string]string{"kind": "test", "quoted": `a "b" <c> & ü \`, "empty": ""}
)

func f64s(values ...float64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func f32s(d DType, values ...float32) []byte {
	b := make([]byte, int64(len(values))*d.Size())
	d.PutFloat32s(b, values)
	return b
}

// ourFile writes the sections in pieces of random length and random order.
func ourFile(t testing.TB, rng *rand.Rand) []byte {
	t.Helper()
	var m memory
	sw, err := NewSafetensorsWriter(&m, ourSections, ourMetadata)
	if err != nil {
		t.Fatal(err)
	}
	left := make([][]byte, len(ourData))
	copy(left, ourData)
	for {
		var open []int
		for i, b := range left {
			if len(b) > 0 {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			break
		}
		i := open[rng.IntN(len(open))]
		n := 1 + rng.IntN(len(left[i]))
		if k, err := sw.Section(i).Write(left[i][:n]); k != n || err != nil {
			t.Fatalf("section %d: wrote %d of %d: %v", i, k, n, err)
		}
		left[i] = left[i][n:]
	}
	if err := sw.Close(); err != nil {
		t.Fatal(err)
	}
	return m
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func TestSafetensorsRoundTrip(t *testing.T) {
	rng := newRand()
	first := ourFile(t, rng)
	for range 20 {
		if again := ourFile(t, rng); !bytes.Equal(again, first) {
			t.Fatal("the file depends on the order in which sections are filled")
		}
	}
	path := filepath.Join(t.TempDir(), "f.safetensors")
	if err := os.WriteFile(path, first, 0o644); err != nil {
		t.Fatal(err)
	}
	st, err := OpenSafetensors(path)
	if err != nil {
		t.Fatal(err)
	}
	if !st.HasChecksums() || len(st.ID()) != 64 {
		t.Errorf("checksums %v, ID %q", st.HasChecksums(), st.ID())
	}
	if err := st.Verify(); err != nil {
		t.Error(err)
	}
	for k, v := range ourMetadata {
		if st.Metadata[k] != v {
			t.Errorf("metadata %q = %q, want %q", k, st.Metadata[k], v)
		}
	}
	if len(st.Sections) != len(ourSections) {
		t.Fatalf("%d sections, want %d", len(st.Sections), len(ourSections))
	}
	for i, want := range ourSections {
		v := view(t, st, want.Name)
		if !bytes.Equal(v.Data, ourData[i]) || v.DType != want.DType || fmt.Sprint(v.Shape) != fmt.Sprint(want.Shape) {
			t.Errorf("section %q reads back as %v %v % x", want.Name, v.DType, v.Shape, v.Data)
		}
	}
	mean, part := view(t, st, "mean"), make([]float64, 2)
	if mean.Float64s(part, 1); part[0] != -2 || part[1] != 1e300 {
		t.Errorf("mean[1:3] = %v", part)
	}
	mustPanic(t, "a stretch into the next section", func() { mean.Float64s(part, 2) })
	if _, ok := st.View("absent"); ok {
		t.Error("found a section that is not there")
	}
	if err := errors.Join(st.Close(), st.Close()); err != nil {
		t.Error(err)
	}
}

// ours.safetensors is what the writer makes today, and ours.json is what
// Python's safetensors read in it.
func TestPythonReadsOurs(t *testing.T) {
	const path = "testdata/ours.safetensors"
	file := ourFile(t, newRand())
	if *update {
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(file, want) {
		t.Fatalf("the writer's output changed (%v): if it should, run this test with -update, then testdata/make.py", err)
	}

	js, err := os.ReadFile("testdata/ours.json")
	if err != nil {
		t.Fatal(err)
	}
	type tensor struct {
		DType  DType
		Shape  []int64
		Values []float64
	}
	var python struct {
		Metadata map[string]string
		Tensors  map[string]tensor
	}
	if err := json.Unmarshal(js, &python); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(python.Metadata, ourMetadata) {
		t.Errorf("Python reads the metadata as %q", python.Metadata)
	}
	if len(python.Tensors) != len(ourSections) {
		t.Errorf("Python reads %d tensors, want %d", len(python.Tensors), len(ourSections))
	}
	for i, s := range ourSections {
		got := python.Tensors[s.Name]
		if got.DType != s.DType || fmt.Sprint(got.Shape) != fmt.Sprint(s.Shape) {
			t.Errorf("Python reads %q as %v %v", s.Name, got.DType, got.Shape)
		}
		if values := anyValues(s.DType, ourData[i]); fmt.Sprint(got.Values) != fmt.Sprint(values) {
			t.Errorf("Python reads %q as %v, want %v", s.Name, got.Values, values)
		}
	}
}

// anyValues decodes elements of any type the tests use.
func anyValues(d DType, b []byte) []float64 {
	out := make([]float64, int64(len(b))/d.Size())
	narrow := make([]float32, len(out))
	for i := range out {
		switch d {
		case F64, F32:
			d.Float64s(out, b)
		case F16, BF16:
			d.Float32s(narrow, b)
			out[i] = float64(narrow[i])
		case I64:
			out[i] = float64(int64(binary.LittleEndian.Uint64(b[8*i:])))
		case I32:
			out[i] = float64(int32(binary.LittleEndian.Uint32(b[4*i:])))
		case I16:
			out[i] = float64(int16(binary.LittleEndian.Uint16(b[2*i:])))
		case I8:
			out[i] = float64(int8(b[i]))
		default:
			out[i] = float64(b[i])
		}
	}
	return out
}

func TestReadsPythons(t *testing.T) {
	st := golden(t)
	if st.Metadata["kind"] != "golden" {
		t.Errorf("metadata %q", st.Metadata)
	}
	for name, want := range map[string]struct {
		d      DType
		shape  []int64
		values []float64
	}{
		"f64":          {F64, []int64{2, 2}, []float64{0.1, -2.5, 1e300, math.Copysign(0, -1)}},
		"u8":           {U8, []int64{3}, []float64{0, 7, 255}},
		"i8":           {I8, []int64{2}, []float64{-128, 127}},
		"i16":          {I16, []int64{1}, []float64{-300}},
		"i32":          {I32, []int64{1}, []float64{1 << 30}},
		"i64":          {I64, []int64{1}, []float64{-1 << 62}},
		"bool":         {Bool, []int64{2}, []float64{1, 0}},
		"scalar":       {F32, []int64{}, []float64{3.5}},
		"empty":        {F32, []int64{0, 3}, []float64{}},
		`näme "q" <&>`: {F16, []int64{1}, []float64{1.5}},
	} {
		v := view(t, st, name)
		if got := anyValues(v.DType, v.Data); v.DType != want.d || !reflect.DeepEqual(v.Shape, want.shape) || fmt.Sprint(got) != fmt.Sprint(want.values) {
			t.Errorf("%s: %v %v %v, want %v", name, v.DType, v.Shape, got, want)
		}
	}
	// Another program's file has no checksums, which must not look like a pass.
	if err := st.Verify(); st.HasChecksums() || err == nil || len(st.ID()) != 64 {
		t.Errorf("checksums %v, Verify %v, ID %q", st.HasChecksums(), err, st.ID())
	}
}

func TestWriterErrors(t *testing.T) {
	for want, sections := range map[string][]Section{
		`"a": listed twice`:        {{"a", F32, nil}, {"a", F64, nil}},
		"negative dimension":       {{"a", F32, []int64{-1}}},
		"too many elements":        {{"a", F32, []int64{1 << 40, 1 << 40}}},
		`"a": invalid cannot`:      {{"a", Invalid, nil}},
		`"__metadata__": F32 cann`: {{"__metadata__", F32, nil}},
	} {
		if _, err := NewSafetensorsWriter(new(memory), sections, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}

	var m memory
	shape := []Section{{"a", U8, []int64{3}}, {"b", U8, []int64{1}}}
	meta := map[string]string{"k": "v"}
	sw, err := NewSafetensorsWriter(&m, shape, meta)
	if err != nil {
		t.Fatal(err)
	}
	shape[0].Name, meta["later"] = "changed", "ignored" // the plan must not follow
	if _, err := sw.Section(0).Write(make([]byte, 4)); err == nil {
		t.Error("a section takes more than it holds")
	}
	io.WriteString(sw.Section(0), "ab")
	if err := sw.Close(); err == nil || !strings.Contains(err.Error(), `section "a": 2 of 3 bytes`) {
		t.Errorf("Close of a file that is not full: %v", err)
	}
	io.WriteString(sw.Section(0), "c")
	io.WriteString(sw.Section(1), "d")
	if err := sw.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := ParseSafetensors("m", m)
	if err != nil {
		t.Fatal(err)
	}
	if v := view(t, st, "a"); string(v.Data) != "abc" || st.Metadata["later"] != "" {
		t.Errorf("a = %q, metadata %q", v.Data, st.Metadata)
	}

	full := errors.New("disk full")
	sw, err = NewSafetensorsWriter(failingWriter{full}, shape[1:], nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(sw.Section(0), "d"); !errors.Is(err, full) {
		t.Errorf("Write: %v, want %v", err, full)
	}
	if err := sw.Close(); err == nil {
		t.Error("Close after a failed write: no error")
	}
}

type failingWriter struct{ err error }

func (w failingWriter) WriteAt([]byte, int64) (int, error) { return 0, w.err }

// container is a safetensors file with any header.
func container(header, body string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header+body...)
}

func TestSafetensorsAttacks(t *testing.T) {
	one := func(fields string) []byte { return container(`{"a":{`+fields+`}}`, "1234") }
	good := `"dtype":"F32","shape":[1],"data_offsets":[0,4]`
	if _, err := ParseSafetensors("x", one(good)); err != nil {
		t.Fatal(err) // or the attacks below prove nothing
	}
	// An empty section may be listed after the one that begins where it lies.
	if _, err := ParseSafetensors("x", container(`{"a":{`+good+`},"e":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, "1234")); err != nil {
		t.Error(err)
	}
	two := func(a, b string) []byte {
		return container(fmt.Sprintf(`{"a":{"dtype":"U8","shape":[2],"data_offsets":%s},"b":{"dtype":"U8","shape":[2],"data_offsets":%s}}`, a, b), "1234")
	}
	long := append(binary.LittleEndian.AppendUint64(nil, maxHeader+1), '{')
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty file":             {nil, "too short"},
		"half a length":          {make([]byte, 7), "too short"},
		"empty header":           {container("", ""), "not a JSON object"},
		"header beyond the file": {container(`{}`, "")[:9], "truncated"},
		"header over 100 MB":     {long, "safetensors allows"},
		"header length 2⁶⁴-1":    {bytes.Repeat([]byte{255}, 64), "safetensors allows"},
		"not JSON":               {container("{hello}", ""), "invalid character"},
		"a JSON list":            {container("[]", ""), "not a JSON object"},
		"leading space":          {container(" {}", ""), "not a JSON object"},
		"unclosed object":        {container(`{"a":{`+good+`}`, "1234"), "EOF"},
		"closed by a bracket":    {container(`{]`, ""), "invalid character"},
		"two objects":            {container(`{}{}`, ""), "text after"},
		"null":                   {container(`{"a":null}`, ""), "wants dtype"},
		"a number":               {container(`{"a":1}`, ""), "cannot unmarshal"},
		"deep nesting":           {container(`{"a":`+strings.Repeat("[", 1<<20), ""), "exceeded max depth"},
		"duplicate name":         {container(`{"a":{`+good+`},"a":{`+good+`}}`, "1234"), `section "a": listed twice`},
		"duplicate by escape":    {container(`{"a":{`+good+`},"\u0061":{`+good+`}}`, "1234"), `section "a": listed twice`},
		"duplicate metadata":     {container(`{"__metadata__":{},"__metadata__":{}}`, ""), "listed twice"},
		"metadata not strings":   {container(`{"__metadata__":{"a":1}}`, ""), "__metadata__: json: cannot unmarshal number"},
		"metadata a list":        {container(`{"__metadata__":[]}`, ""), "cannot unmarshal array"},
		"unknown dtype":          {one(`"dtype":"F8","shape":[1],"data_offsets":[0,4]`), `dtype "F8"`},
		"no dtype":               {one(`"shape":[1],"data_offsets":[0,4]`), "wants dtype"},
		"no shape":               {one(`"dtype":"F32","data_offsets":[0,4]`), "wants dtype, shape"},
		"no offsets":             {one(`"dtype":"F32","shape":[1]`), "wants dtype"},
		"one offset":             {one(`"dtype":"F32","shape":[0],"data_offsets":[0]`), "two data_offsets"},
		"three offsets":          {one(`"dtype":"F32","shape":[1],"data_offsets":[0,4,8]`), "two data_offsets"},
		"negative shape":         {one(`"dtype":"F32","shape":[-1],"data_offsets":[0,4]`), "negative dimension"},
		"shape product overflow": {one(`"dtype":"F32","shape":[4294967296,4294967297],"data_offsets":[0,4]`), "too many elements"},
		"fractional shape":       {one(`"dtype":"F32","shape":[1.5],"data_offsets":[0,4]`), "cannot unmarshal"},
		"wrong size":             {one(`"dtype":"F64","shape":[1],"data_offsets":[0,4]`), "4 bytes, want 8 for F64 [1]"},
		"too large":              {one(`"dtype":"U8","shape":[3],"data_offsets":[0,4]`), "4 bytes, want 3 for U8 [3]"},
		"offsets backwards":      {one(`"dtype":"F32","shape":[1],"data_offsets":[4,0]`), "truncated"},
		"negative offset":        {one(`"dtype":"F32","shape":[2],"data_offsets":[-4,4]`), "truncated"},
		"offsets beyond file":    {one(`"dtype":"F32","shape":[2],"data_offsets":[0,8]`), "truncated"},
		"offset 2⁶³":             {one(`"dtype":"F32","shape":[1],"data_offsets":[0,9223372036854775808]`), "cannot unmarshal"},
		"hole at the start":      {one(`"dtype":"U8","shape":[3],"data_offsets":[1,4]`), "holes and overlaps"},
		"hole between":           {append(two("[0,2]", "[3,5]"), 5), "holes and overlaps"},
		"overlap":                {two("[0,2]", "[1,3]"), "holes and overlaps"},
		"same bytes twice":       {two("[0,2]", "[0,2]"), "holes and overlaps"},
		"tail":                   {append(two("[2,4]", "[0,2]"), 5), "with a tail"},
	} {
		st, err := ParseSafetensors("evil.st", c.data)
		if err == nil || !strings.HasPrefix(err.Error(), "evil.st: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %q", name, st, err, c.want)
		}
	}
}

// A file cut anywhere, or with anything behind its end, is refused on opening,
// without reading its data.
func TestSafetensorsTruncated(t *testing.T) {
	file := ourFile(t, newRand())
	for n := range len(file) {
		if _, err := ParseSafetensors("cut", file[:n:n]); err == nil {
			t.Errorf("cut to %d of %d bytes: no error", n, len(file))
		}
	}
	if _, err := ParseSafetensors("tail", append(bytes.Clone(file), 0)); err == nil {
		t.Error("a tail goes unnoticed")
	}
}

// Flipped bits are caught wherever they are: length, header, padding or data.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	file := ourFile(t, newRand())
	for bit := 0; bit < 8*len(file); bit += 3 { // in each byte two or three, in each position many
		file[bit/8] ^= 1 << (bit % 8)
		if st, err := ParseSafetensors("flipped", file); err == nil && st.Verify() == nil {
			t.Errorf("bit %d of byte %d (%q): flip goes unnoticed", bit%8, bit/8, file[bit/8])
		}
		file[bit/8] ^= 1 << (bit % 8)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, dir, filepath.Join(dir, "absent")} {
		if _, err := OpenSafetensors(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v does not name %s", err, path)
		}
	}
	if m, err := Map(empty); err != nil || len(m.Data) != 0 || m.Close() != nil {
		t.Errorf("mapping an empty file: %v", err)
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(ourFile(f, newRand()))
	f.Add(container(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"__metadata__":{"crc32c":"{}","crc32c_header":"00000000"}}   `, "1234"))
	f.Add(container(`{}`, ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		var st *Safetensors
		var err error
		reliability.Heap(t, len(data), func() {
			if st, err = ParseSafetensors("fuzz", data); err == nil {
				st.Verify()
			}
		})
		if err != nil {
			return
		}
		// What is accepted lies inside the file and covers it.
		total := 0
		for _, s := range st.Sections {
			v, ok := st.View(s.Name)
			if n, err := Elements(s.Shape); !ok || err != nil || n != v.Len() || n*s.DType.Size() != int64(len(v.Data)) {
				t.Errorf("section %q: %v elements in %d bytes", s.Name, n, len(v.Data))
			}
			total += len(v.Data)
		}
		if body := len(data) - 8 - len(st.header); total != body {
			t.Errorf("sections cover %d of %d bytes", total, body)
		}
	})
}
