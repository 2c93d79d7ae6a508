package dataset

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/internal/augment"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// Datasets have equal IDs where their examples and the order of these are the same, and
// whatever else differs has another.
func TestID(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, from string) string {
		b, err := os.ReadFile(td(from))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	idx, float := write("a/images", "t10k-images-idx3-ubyte"), write("a/f32.npy", "f32.npy")
	labels := write("a/labels.gz", "t10k-labels-idx1-ubyte.gz")
	open := func(path string, opts Options) Dataset {
		d, err := Open([]string{path}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	all := open(idx, Options{})
	if a, b := ID(all), ID(open(write("b/other", "t10k-images-idx3-ubyte"), Options{})); a != b || a == "" {
		t.Errorf("the same file in another place: %q and %q", a, b)
	}
	if a, b := ID(all), ID(open(idx, Options{Labels: labels})); a != b {
		t.Errorf("labelled: %q and %q", a, b)
	}
	if ID(Subset(all, Order{})) != ID(all) {
		t.Error("all of it in its order has another ID")
	}
	flip, err := augment.Parse("RandomHorizontalFlip")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{ID(all): "all"}
	for name, d := range map[string]Dataset{
		"normalised": open(idx, Options{Preprocess: preprocess.Settings{Mean: []float64{0.5}, Std: []float64{0.5}}}), "augmented": open(idx, Options{Augment: flip}),
		"float": open(float, Options{}), "as seen": open(float, Options{Arrays: Seen}), "part": Part(all, 0, 2), "another part": Part(all, 1, 3),
		"shuffled": Subset(all, Order{Shuffle: true, Seed: 1}), "shuffled again": Subset(all, Order{Shuffle: true, Seed: 2}), "limited": Subset(all, Order{Limit: 2}),
		"part of a part": Part(Part(all, 1, 3), 0, 1),
	} {
		id := ID(d)
		if was, twice := seen[id]; twice || id == "" {
			t.Errorf("%s has the ID %q, as %s", name, id, was)
		}
		seen[id] = name
	}
	type anonymous struct{ Dataset }
	if id := ID(Part(anonymous{all}, 0, 2)); id != "" {
		t.Errorf("a part of what has no ID has %q", id)
	}
}
