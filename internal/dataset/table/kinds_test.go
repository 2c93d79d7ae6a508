package table

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
)

type kinds struct {
	Decimals map[string][]any
	Texts    map[string][]string
}

// Decimals are the numbers that Python reads, and times are no numbers, whatever their unit: testdata/kinds.py.
func TestParquetKinds(t *testing.T) {
	const path = "testdata/kinds.parquet"
	var golden kinds
	testfile.JSON(t, "testdata/kinds.json", &golden)
	for name, want := range golden.Decimals {
		columns, err := read(path, nil, []string{name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := nested(columns[name], len(want)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if columns, err := read(path, nil, []string{"whole"}); err != nil || columns["whole"].Ints == nil || columns["whole"].Ints[0] != 9007199254740993 {
		t.Errorf("whole decimals: %v", err)
	}
	if columns, err := read(path, []string{"int32"}, nil); err != nil || strings.Join(columns["int32"].Texts, " ") != "2 -0.05 1234567.89 0" {
		t.Errorf("decimals as text: %v, %v", columns["int32"], err)
	}
	for name, want := range golden.Texts {
		columns, err := read(path, []string{name}, nil)
		if err != nil || !slices.Equal(columns[name].Texts, want) {
			t.Errorf("%s: %v, %v, want %q", name, columns[name], err, want)
		}
	}
	for name, want := range map[string]string{
		"s": timestamps, "ms": timestamps, "us": timestamps, "ns": timestamps, "tz": timestamps, "date32": dates, "date64": dates,
		"time32": clocks, "time64": clocks, "duration": durations, "durations": durations,
	} {
		_, err := read(path, nil, []string{name})
		if e, ok := errors.AsType[*TimeError](err); !ok || e.What != want || !strings.Contains(e.Hint(), name) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if _, err := read("testdata/int96.parquet", nil, []string{"int96"}); !errors.As(err, new(*TimeError)) {
		t.Errorf("int96: %v", err)
	}
	if columns, err := read("testdata/int96.parquet", []string{"int96"}, nil); err != nil || !slices.Equal(columns["int96"].Texts, golden.Texts["ns"]) {
		t.Errorf("int96 as text: %v, %v", columns["int96"], err)
	}
}

// Only categories whose order someone chose are in that order.
func TestCategories(t *testing.T) {
	chosen, occurring := []string{"mid", "lo", "hi", "never"}, []string{"lo", "hi", "mid"}
	for _, c := range []struct {
		path, name string
		want       []string
		ordered    bool
	}{
		{"testdata/pandas.parquet", "chosen", chosen, true},
		{"testdata/pandas.parquet", "sorted", []string{"hi", "lo", "mid"}, true},
		{"testdata/pandas.parquet", "plain", nil, false},
		{"testdata/polars.parquet", "enum", chosen, true},
		{"testdata/polars.parquet", "occurring", occurring, false},
		{"testdata/good.parquet", "word", []string{"a", "b", "", "ü", "=1"}, false},
	} {
		columns, err := read(c.path, []string{c.name}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := columns[c.name]; !slices.Equal(got.Categories, c.want) || got.Ordered != c.ordered {
			t.Errorf("%s: categories %q, ordered %t", c.name, got.Categories, got.Ordered)
		}
	}
}

// LZ4 is refused before anything is read: some columns of such files would be zeros.
func TestCompression(t *testing.T) {
	_, err := Open("testdata/lz4.parquet")
	e, ok := errors.AsType[*CompressionError](err)
	if !ok || e.Codec != "LZ4_RAW" || e.Column != "x" || !strings.HasPrefix(err.Error(), "testdata/lz4.parquet: ") {
		t.Errorf("%v", err)
	}
}

// Booleans in run lengths are refused, and plain ones with levels in run lengths are read.
func TestBooleans(t *testing.T) {
	if _, err := read("testdata/runs.parquet", nil, []string{"yes"}); !errors.As(err, new(*EncodingError)) {
		t.Error(err)
	}
	columns, err := read("testdata/plain.parquet", []string{"yes"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range columns["yes"].Texts {
		want := map[bool]string{true: "1", false: "0"}[i%20 > 9]
		if i%7 == 0 {
			want = ""
		}
		if got != want {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
}
