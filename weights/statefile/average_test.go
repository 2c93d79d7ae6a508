package statefile

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/weights"
)

// Two networks in a state_dict have the same names and shapes behind different beginnings. Layers, blocks and the halves of an
// autoencoder are one network.
func TestNetworkKeys(t *testing.T) {
	t.Parallel()
	type shapes map[string][]int64
	for name, c := range map[string]struct {
		tensors shapes
		want    []string
	}{
		"two networks": {shapes{"online.0.weight": {2, 3}, "online.0.bias": {2}, "ema.0.weight": {2, 3}, "ema.0.bias": {2}},
			[]string{"ema", "online"}},
		"numbered layers": {shapes{"0.weight": {2, 3}, "0.bias": {2}, "2.weight": {4, 2}, "2.bias": {4}}, nil},
		"equal layers":    {shapes{"fc1.weight": {2, 2}, "fc1.bias": {2}, "fc2.weight": {2, 2}, "fc2.bias": {2}}, nil},
		"equal blocks": {shapes{"0.conv.weight": {2, 2}, "0.conv.bias": {2}, "1.conv.weight": {2, 2}, "1.conv.bias": {2}},
			nil},
		"halves": {shapes{"enc.0.weight": {2, 3}, "enc.0.bias": {2}, "dec.0.weight": {3, 2}, "dec.0.bias": {3}}, nil},
		"one of two is smaller": {shapes{"online.0.weight": {2, 3}, "online.0.bias": {2}, "ema.0.weight": {2, 3}},
			nil},
	} {
		var entries []Entry
		for tensor, shape := range c.tensors {
			n := 4
			for _, d := range shape {
				n *= int(d)
			}
			entries = append(entries, Entry{Name: tensor, DType: weights.F32, Shape: shape, Elements: func(w io.Writer) error {
				_, err := w.Write(make([]byte, n))
				return err
			}})
		}
		var file bytes.Buffer
		if err := Write(&file, "x", entries, ""); err != nil {
			t.Fatal(name, err)
		}
		f, err := Parse("x.pt", file.Bytes())
		if err != nil {
			t.Fatal(name, err)
		}
		got := f.StateDicts()[0].NetworkKeys()
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Python's swagwrap.convert marks a file with an average in its metadata.
func TestMarkedSafetensors(t *testing.T) {
	t.Parallel()
	for _, metadata := range []map[string]string{nil, {averageKey: "use_ema has the same weights"}} {
		path := filepath.Join(t.TempDir(), "a.safetensors")
		out, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		entries := []Entry{{Name: "w", DType: weights.F32, Shape: []int64{2}, Elements: func(w io.Writer) error {
			_, err := w.Write(make([]byte, 8))
			return err
		}}}
		if err := WriteSafetensors(out, entries, metadata, ""); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := f.StateDicts()[0].Average().Mark; got != metadata[averageKey] {
			t.Errorf("metadata %v: mark %q", metadata, got)
		}
	}
}
