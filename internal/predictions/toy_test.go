package predictions

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/task"
)

// toy is what a task that nobody has written yet would hold: two numbers, a list of
// them, a class and a list of classes, with something hidden between.
func toy() (*Schema, []Row) {
	s := &Schema{
		Columns: []task.Column{
			{Name: "mean"},
			{Name: "hidden", Hidden: true, Shape: []int{2}},
			{Name: "spread", Kind: task.Float32},
			{Name: "kind", Kind: task.Class},
			{Name: "quantiles", Cell: "q_%d", Shape: []int{3}, Shown: 2},
			{Name: "boxes", Cell: "box_%d_%d", Kind: task.Class, Shape: []int{2, 2}},
		},
		ClassNames: []string{"no", "yes"}, Labels: true, Errors: true,
	}
	return s, []Row{
		{Index: 0, Path: "a", Label: 1, Values: []float64{-2.5, 7, 7, 0.5, 1, 10, 20, 30, 1, 2, 3, 4}},
		{Index: 1, Path: "b", Label: -1, Error: "broken"},
		{Index: 2, Path: "c", Label: 0, Values: []float64{math.Inf(1), 8, 8, 0.25, 0, -1, 0, 1, 5, 6, 7, 8}},
	}
}

// Any columns are written in every format.
func TestAnyColumns(t *testing.T) {
	schema, rows := toy()
	written := map[string]string{}
	for _, format := range formats {
		var b bytes.Buffer
		if err := Write(&b, format, schema, t.TempDir(), iterate(rows)); err != nil {
			t.Fatal(err)
		}
		written[format] = b.String()
	}
	for format, want := range map[string]string{
		".csv": "path,label,mean,spread,kind,name,q_0,q_1,box_0_0,box_0_1,box_1_0,box_1_1,error\n" +
			"a,1,-2.5,0.5,1,yes,10,20,1,2,3,4,\n" +
			"b,,,,,,,,,,,,broken\n" +
			"c,0,+Inf,0.25,0,no,-1,0,5,6,7,8,\n",
		".jsonl": `{"path":"a","label":1,"mean":-2.5,"spread":0.5,"kind":1,"name":"yes","quantiles":[10,20],"boxes":[[1,2],[3,4]]}` + "\n" +
			`{"path":"b","label":null,"mean":null,"spread":null,"kind":null,"error":"broken"}` + "\n" +
			`{"path":"c","label":0,"mean":null,"spread":0.25,"kind":0,"name":"no","quantiles":[-1,0],"boxes":[[5,6],[7,8]]}` + "\n",
	} {
		if diff := cmp.Diff(want, written[format]); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}

	type row struct {
		Path      string    `parquet:"path"`
		Label     *int64    `parquet:"label,optional"`
		Mean      *float64  `parquet:"mean,optional"`
		Spread    *float32  `parquet:"spread,optional"`
		Kind      *int32    `parquet:"kind,optional"`
		Name      *string   `parquet:"name,optional"`
		Quantiles []float64 `parquet:"quantiles,list"`
		Boxes     []int32   `parquet:"boxes,list"`
		Error     *string   `parquet:"error,optional"`
	}
	got, err := parquet.Read[row](strings.NewReader(written[".parquet"]), int64(len(written[".parquet"])))
	if err != nil {
		t.Fatal(err)
	}
	want := []row{
		{"a", new(int64(1)), new(-2.5), new(float32(0.5)), new(int32(1)), new("yes"), []float64{10, 20}, []int32{1, 2, 3, 4}, nil},
		{Path: "b", Quantiles: []float64{}, Boxes: []int32{}, Error: new("broken")},
		{"c", new(int64(0)), new(math.Inf(1)), new(float32(0.25)), new(int32(0)), new("no"), []float64{-1, 0}, []int32{5, 6, 7, 8}, nil},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf(".parquet: %s", diff)
	}

	path := filepath.Join(t.TempDir(), "toy.npz")
	check(t, os.WriteFile(path, []byte(written[".npz"]), 0o666))
	f, err := numpy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := []string{"path", "mean", "spread", "kind", "label", "quantiles", "boxes", "error"}
	if diff := cmp.Diff(names, f.Keys); diff != "" {
		t.Error(diff)
	}
	nan := math.NaN()
	for name, want := range map[string][]float64{"mean": {-2.5, nan, math.Inf(1)}, "spread": {0.5, nan, 0.25}, "quantiles": {10, 20, nan, nan, -1, 0}} {
		x, err := f.Read(name, predictionRole)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, x.Float64s(), sameRow); diff != "" {
			t.Errorf(".npz, %s: %s", name, diff)
		}
	}
	if x, err := f.Read("boxes", numpy.Role{OK: func(numpy.Type) bool { return true }}); err != nil || !cmp.Equal(x.Shape, []int{3, 2, 2}) || x.Data[8*4] != 0xff || x.Data[8*11] != 8 {
		t.Errorf(".npz, boxes: %v, %v", x, err)
	}
}

// And come back from the work file, the hidden ones too.
func TestRecordsOfAnyColumns(t *testing.T) {
	schema, want := toy()
	head, err := schema.Head("", records.Part{}, nil)
	check(t, err)
	r, err := records.Open(filepath.Join(t.TempDir(), "toy.partial"), records.Unfinished, head, records.Refuse)
	check(t, err)
	defer r.Close()
	check(t, r.Append(0, func(yield func(*Row) bool) {
		for i := range want {
			yield(&want[i])
		}
	}))
	var got []Row
	check(t, r.Each(func(row *Row) error {
		c := *row
		c.Values = slices.Clone(row.Values)
		got = append(got, c)
		return nil
	}))
	if diff := cmp.Diff(want, got, sameRow); diff != "" {
		t.Error(diff)
	}
}

// Arrays are held back in files, which nobody can see.
func TestHeldArrays(t *testing.T) {
	schema, some := inventedRows()
	var many []Row
	for i := range 20000 {
		r := some[i%3]
		r.Path = strings.Repeat("é", i%50) + r.Path
		many = append(many, r)
	}
	var got bytes.Buffer
	dir := t.TempDir()
	z, err := newNPZ(&got, schema, dir)
	defer z.discard()
	check(t, err)
	check(t, iterate(many)(z.Write))
	if info, err := z.arrays[0].held.Stat(); err != nil || info.Size() < 1<<20 {
		t.Fatalf("%d bytes in the file, %v: the test shows nothing", info.Size(), err)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
		t.Errorf("%v in the folder, %v", found, err)
	}
	check(t, z.Close())
	path := filepath.Join(t.TempDir(), "many.npz")
	check(t, os.WriteFile(path, got.Bytes(), 0o666))
	p, err := Read(path, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p.Len() != 13333 || p.LeftOut != 6667 {
		t.Errorf("%d rows, %d left out", p.Len(), p.LeftOut)
	}
	for k, i := range p.Rows {
		if diff := cmp.Diff(many[i].Values[11:14], p.Values[3*k:3*k+3]); diff != "" {
			t.Fatalf("row %d: %s", i, diff)
		}
	}
	// Paths are as wide as the longest: 49 and 9 characters of four bytes.
	z2, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z2.Close()
	b, err := fs.ReadFile(z2, "path.npy")
	if err != nil {
		t.Fatal(err)
	}
	const width = 4 * 58
	if !bytes.Contains(b[:128], []byte("'<U58'")) {
		t.Fatalf("header %q", b[:128])
	}
	for i, row := range slices.Collect(slices.Chunk(b[len(b)-20000*width:], width)) {
		var path []rune
		for c := range slices.Chunk(row, 4) {
			path = append(path, rune(binary.LittleEndian.Uint32(c)))
		}
		if got := strings.TrimRight(string(path), "\x00"); got != many[i].Path {
			t.Fatalf("row %d: path %q, want %q", i, got, many[i].Path)
		}
	}
	if _, err := Read(path, ReadOptions{Key: "member_probs"}); err == nil || !strings.Contains(err.Error(), "shape [20000 2 3]") {
		t.Errorf("members: %v", err)
	}
	if err := Write(&bytes.Buffer{}, ".npz", schema, filepath.Join(dir, "gone"), iterate(many)); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
