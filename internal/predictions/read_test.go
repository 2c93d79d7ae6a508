package predictions

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/numpy"
)

// three are what all files of the test say: a row without predictions between two.
var three = &Set{Classes: 2, Values: []float64{0.25, 0.75, 1, 0}, Probabilities: true, Labels: []int{1, 0}, Rows: []int{0, 2}, LeftOut: 1}

func TestRead(t *testing.T) {
	nan := math.NaN()
	probs := []float64{0.25, 0.75, nan, nan, 1, 0}
	f32 := func(x []float64) []byte {
		b, err := binary.Append(nil, binary.LittleEndian, asFloat32(x))
		check(t, err)
		return npyFile("<f4", b, len(x)/2, 2)
	}
	f64 := func(x []float64) []byte {
		b, err := binary.Append(nil, binary.LittleEndian, x)
		check(t, err)
		return npyFile("<f8", b, len(x)/2, 2)
	}
	labels := npyFile("|u1", []byte{1, 0, 0}, 3)
	type wide struct {
		P0    *float64 `parquet:"p_0,optional"`
		P1    *float64 `parquet:"p_1,optional"`
		Label *int64   `parquet:"label,optional"`
	}
	type narrow struct { // as score writes it
		Path  string    `parquet:"path"`
		Label *int64    `parquet:"label,optional"`
		Probs []float64 `parquet:"probs,list"`
	}
	one, zero := int64(1), int64(0)
	for name, test := range map[string]struct {
		data []byte
		from string
	}{
		"a.npz":     {npz(t, "probs", f64(probs), "label", labels, "member_probs", f32(probs)), `array "probs"`},
		"b.npz":     {npz(t, "Probabilities", f32(probs), "y", labels), `array "Probabilities"`},
		"c.npz":     {npz(t, "out", f32(probs), "targets", labels), `array "out"`},
		"a.csv":     {[]byte("path,label,p_0,p_1,member_0_p_0\na,1,0.25,0.75,9\nb,,,,\n#c,0,1,0,9\n"), "columns p_0 to p_1"},
		"b.csv":     {[]byte("\xef\xbb\xbfprob1,prob0, Target\r\n0.75,0.25,1.0\r\n,,0\r\n0,1,0\r\n"), "columns prob_0 to prob_1"},
		"a.tsv":     {[]byte("probability_0\tprobability_1\tlabels\n0.25\t0.75\t1\n\t\t\n1\t0\t0\n"), "columns probability_0 to probability_1"},
		"a.jsonl":   {[]byte("{\"path\":\"a\",\"label\":1,\"probs\":[0.25,0.75]}\n{\"path\":\"b\",\"label\":null,\"error\":\"no\"}\n{\"label\":0,\"probs\":[1,0]}"), `list "probs"`},
		"b.jsonl":   {[]byte("{\"p_0\":0.25,\"p_1\":0.75,\"y\":1}\n{\"p_0\":null,\"p_1\":null}\n\n{\"p_1\":0,\"p_0\":1,\"y\":0}"), "columns p_0 to p_1"},
		"a.parquet": {parquetFile(t, []wide{{new(0.25), new(0.75), &one}, {}, {new(1.0), new(0.0), &zero}}), "columns p_0 to p_1"},
		"b.parquet": {parquetFile(t, []narrow{{"a", &one, []float64{0.25, 0.75}}, {"b", nil, nil}, {"c", &zero, []float64{1, 0}}}), `list "probs"`},
	} {
		path := saved(t, name, test.data)
		got, err := Read(path, ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(got.SHA256) != 64 || got.From != test.from || got.Len() != 2 {
			t.Errorf("%s: sum %q, from %q, %d rows", name, got.SHA256, got.From, got.Len())
		}
		if diff := cmp.Diff(three, got, cmpopts.IgnoreFields(Set{}, "Path", "SHA256", "From")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func asFloat32(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

func parquetFile[T any](t *testing.T, rows []T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(2))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	check(t, w.Close())
	return b.Bytes()
}

// Probabilities are told from logits by what they are.
func TestPredictionsAreDetected(t *testing.T) {
	for name, test := range map[string]struct {
		text          string
		probabilities bool
		values        []float64
	}{
		"logits":                      {"logit_0,logit_1\n2,-3\n0.5,0.5\n", false, []float64{2, -3, 0.5, 0.5}},
		"log-probabilities":           {"logits_0,logits_1\n-Inf,0\n-1,-2\n", false, []float64{math.Inf(-1), 0, -1, -2}},
		"probabilities":               {"p0,p1\n0.5,0.5\n1,0\n", true, []float64{0.5, 0.5, 1, 0}},
		"probabilities as float32":    {"p0,p1\n0.50000006,0.5\n", true, []float64{0.50000006, 0.5}},
		"probabilities, called so":    {"logit_0,logit_1\n0.25,0.75\n", true, []float64{0.25, 0.75}},
		"logits before probabilities": {"p_0,p_1,logit_1,logit_0\n0.73,0.27,3,4\n", false, []float64{4, 3}},
	} {
		p, err := Read(saved(t, "x.csv", []byte(test.text)), ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Probabilities != test.probabilities || !slices.Equal(p.Values, test.values) || p.Labels != nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestPredictionsWithLabelsOfTheirOwn(t *testing.T) {
	path := saved(t, "x.csv", []byte("p_0,p_1,label\n0.5,0.5,0\n1,0,0\n"))
	labels := saved(t, "y.npy", npyFile("|i1", []byte{1, 0}, 2))
	p, err := Read(path, ReadOptions{Labels: labels})
	if err != nil || !slices.Equal(p.Labels, []int{1, 0}) {
		t.Errorf("%+v, %v", p, err)
	}
	short := saved(t, "z.npy", npyFile("|i1", []byte{1}, 1))
	if _, err := Read(path, ReadOptions{Labels: short}); err == nil || !strings.Contains(err.Error(), "z.npy: 1 labels for 2") {
		t.Errorf("error %v", err)
	}
}

func TestPredictionsErrors(t *testing.T) {
	one := npyFile("<f4", make([]byte, 8), 1, 2)
	type list struct {
		Probs []float64 `parquet:"probs,list"`
	}
	type labelled[L any] struct {
		P0    float64 `parquet:"p_0"`
		P1    float32 `parquet:"p_1"`
		Label L       `parquet:"label"`
	}
	for name, test := range map[string]struct {
		file, key, want string
		data            []byte
	}{
		"unknown":         {"x.txt", "", `x.txt: format of predictions ".txt"`, nil},
		"empty":           {"x.csv", "", "x.csv: empty", nil},
		"header only":     {"x.csv", "", "no rows", []byte("p_0,p_1\n")},
		"no columns":      {"x.csv", "", "no columns p_0, p_1", []byte("a,b\n1,2\n")},
		"class missing":   {"x.csv", "", "2 columns p_…, want 3: one for each index", []byte("p_0,p_2\n1,0\n")},
		"class twice":     {"x.csv", "", `two columns "p0"`, []byte("p_0,p0\n1,0\n")},
		"label twice":     {"x.csv", "", `columns "label" and "y" could both be the label`, []byte("label,y,p_0,p_1\n")},
		"one class":       {"x.csv", "", "1 class, want at least 2", []byte("p_0\n1\n")},
		"not a number":    {"x.csv", "", `line 3, column "p_1": "cat", want a number`, []byte("p_0,p_1\n1,0\n1,cat\n")},
		"half a row":      {"x.csv", "", "row 1: class 1: NaN, want a finite number", []byte("p_0,p_1\n1,0\n1,\n")},
		"infinite":        {"x.csv", "", "row 0: class 0: +Inf", []byte("logit_0,logit_1\nInf,0\n")},
		"ragged":          {"x.csv", "", "line 2, column 1: wrong number of fields", []byte("p_0,p_1\n1\n")},
		"binary":          {"x.csv", "", "no columns p_0, p_1", one},
		"label of words":  {"x.csv", "", `line 2, column "label": "cat", want a number`, []byte("p_0,p_1,label\n1,0,cat\n")},
		"half a label":    {"x.csv", "", `row 0: label 0.5, want a class number`, []byte("p_0,p_1,label\n1,0,0.5\n")},
		"label too large": {"x.csv", "", "row 0: label 2, want 0 to 1", []byte("p_0,p_1,label\n1,0,2\n")},
		"only signs":      {"x.csv", "", "all labels are −1 or 1", []byte("p_0,p_1,label\n1,0,1\n1,0,-1\n")},
		"label below −1":  {"x.csv", "", "row 1: label -2, want a class number", []byte("p_0,p_1,label\n1,0,1\n1,0,-2\n")},
		"two predictions": {"x.csv", "", "row 0: columns p_0 to p_1 are not the softmax of columns logit_0 to logit_1", []byte("p_0,p_1,logit_0,logit_1\n1,0,3,4\n")},
		"sum":             {"x.csv", "", "row 0: probabilities sum to 0.9, want 1 within 0.09: save more digits, or logits", []byte("p_0,p_1\n0.5,0.4\n")},
		"negative":        {"x.csv", "", "row 0: class 0: probability 1.5, want 0 to 1", []byte("p_0,p_1\n1.5,-0.5\n")},
		"JSON":            {"x.jsonl", "", "line 2: ", []byte("{\"probs\":[1,0]}\n{\"probs\":[1,")},
		"JSON, ragged":    {"x.jsonl", "", `row 1: column "probs": a list of 3, want 2`, []byte("{\"probs\":[1,0]}\n{\"probs\":[1,0,0]}")},
		"JSON, no list":   {"x.jsonl", "", "no list probs or logits", []byte(`{"probs":3}`)},
		"JSON, empty":     {"x.jsonl", "", "empty, want an object", nil},
		"JSON, text":      {"x.jsonl", "", `line 1, column "probs": "a", want a number`, []byte(`{"probs":["a"]}`)},
		"parquet":         {"x.parquet", "", "x.parquet: ", []byte("PAR1 but not really PAR1")},
		"parquet, short":  {"x.parquet", "", "x.parquet: too short", []byte("PAR1")},
		"parquet, ragged": {"x.parquet", "", `row 1: column "probs": a list of 1, want 2`, parquetFile(t, []list{{[]float64{1, 0}}, {[]float64{1}}})},
		"parquet, empty":  {"x.parquet", "", `list "probs": no row has predictions`, parquetFile(t, []list{{}})},
		"parquet, others": {"x.parquet", "", "no columns p_0, p_1", parquetFile(t, []struct{ A int64 }{{1}})},
		"parquet, words":  {"x.parquet", "", `column "label": STRING, want a number`, parquetFile(t, []labelled[string]{{1, 0, "cat"}})},
		"parquet, half":   {"x.parquet", "", "row 0: label 0.5, want a class number", parquetFile(t, []labelled[float64]{{1, 0, 0.5}})},
		"parquet, large":  {"x.parquet", "", "row 0: label 2, want 0 to 1", parquetFile(t, []labelled[int32]{{1, 0, 2}})},
		"JSON, words":     {"x.jsonl", "", `line 1, column "p_0": "a", want a number`, []byte(`{"p_0":"a","p_1":1}`)},
		"parquet, claims": {"x.parquet", "", "x.parquet: damaged: footer of 4294967295 bytes in a file of 20", []byte("PAR100000000\xff\xff\xff\xffPAR1")},
		"npz, many":       {"x.npz", "", `cannot tell which array holds the predictions`, npz(t, "a", one, "b", one)},
		"npz, key":        {"x.npz", "c", `no array "c", want one of "a", "b"`, npz(t, "a", one, "b", one)},
		"npz, integers":   {"x.npz", "", `x.npz: array "probs": predictions of type uint8, want float16, float32 or float64`, npz(t, "probs", npyFile("|u1", []byte{1, 0}, 1, 2))},
		"npz, shape":      {"x.npz", "", `x.npz: array "probs": shape [1 2 1], want [n classes]`, npz(t, "probs", npyFile("<f4", make([]byte, 8), 1, 2, 1))},
		"npy, key":        {"x.npy", "c", "want an .npz file for key", one},
		"csv, key":        {"x.csv", "c", "no list c, and no columns c_0, c_1 …", []byte("p_0,p_1\n1,0\n")},
	} {
		path := saved(t, test.file, test.data)
		_, err := Read(path, ReadOptions{Key: test.key})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
			continue
		}
		if !strings.HasPrefix(err.Error(), path+": ") || strings.Count(err.Error(), path) > 1 {
			t.Errorf("%s: %q does not name the file once, in front", name, err)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "gone.csv"), ReadOptions{}); err == nil || !strings.Contains(err.Error(), "gone.csv: no such file") {
		t.Errorf("error %v", err)
	}
	folder := filepath.Join(t.TempDir(), "x.csv")
	check(t, os.Mkdir(folder, 0o777))
	if _, err := Read(folder, ReadOptions{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}

// saved writes a file of its own folder, and returns its path.
func saved(t *testing.T, name string, data []byte) string {
	path := filepath.Join(t.TempDir(), name)
	check(t, os.WriteFile(path, data, 0o666))
	return path
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// npyFile returns a file of one array.
func npyFile(dtype string, elements []byte, shape ...int) []byte {
	return append(numpy.Header(dtype, shape...), elements...)
}

// npz returns a zip of arrays, given by name and content.
func npz(t *testing.T, arrays ...any) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(arrays); i += 2 {
		w, err := z.Create(arrays[i].(string) + ".npy")
		check(t, err)
		_, err = w.Write(arrays[i+1].([]byte))
		check(t, err)
	}
	check(t, z.Close())
	return b.Bytes()
}

// FuzzRead: whatever the bytes, no panic, and what comes out is what
// the type guarantees.
func FuzzRead(f *testing.F) {
	exts := []string{".csv", ".jsonl", ".parquet", ".npz"}
	f.Add(0, []byte("p_0,p_1,label\n0.5,0.5,1\n"))
	f.Add(1, []byte(`{"probs":[0.5,0.5],"label":1}`))
	f.Add(2, parquetSeed())
	f.Add(3, []byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, kind int, data []byte) {
		path := filepath.Join(t.TempDir(), "x"+exts[uint(kind)%4])
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		var p *Set
		var err error
		reliability.Heap(t, len(data), func() { p, err = Read(path, ReadOptions{}) })
		if err != nil {
			return
		}
		if p.Classes < 2 || p.Len() < 1 || len(p.Values) != p.Len()*p.Classes || p.Labels != nil && len(p.Labels) != p.Len() {
			t.Fatalf("%+v", p)
		}
		for _, l := range p.Labels {
			if l < 0 || l >= p.Classes {
				t.Fatalf("label %d", l)
			}
		}
		for _, x := range p.Values {
			if math.IsNaN(x) || math.IsInf(x, 1) || p.Probabilities && (x < 0 || x > 1) {
				t.Fatalf("value %v", x)
			}
		}
	})
}

func parquetSeed() []byte {
	type row struct {
		Label int64     `parquet:"label"`
		Probs []float64 `parquet:"probs,list"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	w.Write([]row{{1, []float64{0.5, 0.5}}, {0, []float64{1, 0}}})
	w.Close()
	return b.Bytes()
}

// An array of positions whose header names a size that the file does not have takes no memory.
func TestHugePositions(t *testing.T) {
	dir := t.TempDir()
	path, labels := filepath.Join(dir, "probs.npy"), filepath.Join(dir, "labels.npy")
	if err := os.WriteFile(labels, append(numpy.Header("|u1", 1, 2), 0, 1), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, shape := range [][]int{{1, 3, 1 << 20, 1 << 20}, {1, 1 << 40, 3}, {1 << 62, 4, 4}, {1, 0, 3}} {
		if err := os.WriteFile(path, numpy.Header("<f4", shape...), 0o666); err != nil {
			t.Fatal(err)
		}
		reliability.Heap(t, 0, func() {
			if _, err := OpenPositions(path, "classes", ReadOptions{Labels: labels}); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
				t.Errorf("shape %d: error %v", shape, err)
			}
		})
	}
}
