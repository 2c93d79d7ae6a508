package maps

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Pictures keep as little of their names as distinguishes all of them.
func TestNames(t *testing.T) {
	for _, tc := range []struct{ pictures, want, roots string }{
		{"im/a.png im/s/b.jpg", "a s/b", "im"},
		{"im/a.png im/s/b.jpg", "im/a im/s/b", ""},
		{"im/a.png im/a.bmp im/b.png", "a.png a.bmp b.png", "im"},
		{"im/a.png im/a.confidence.png", "a.png a.confidence.png", "im"},
		{"im/a.png im/a.1.png", "a a.1", "im"}, // no column has such a name
		{"one/a.png two/a.png", "one/a.png two/a.png", "one two"},
		{"im/a.png im/a.png", "a a", "im"}, // the same picture
		{"../x/a.png /y/a.bmp", "x/a y/a", ""},
		{"im/.png im/b.png", ".png b", "im"},
		{"d/test.npz[0] d/test.npz[1]", "test-0 test-1", ""},
		{"d/test.npz[0] d/test.npy[0]", "test.npz-0 test.npy-0", ""},
		{"d/test.npz[0] e/test.npz[0]", "d/test.npz-0 e/test.npz-0", ""},
		{"../a.png a.png", "", ""},
		{"x y x.mean", "", ""}, // without extensions
	} {
		pictures := strings.Fields(tc.pictures)
		for range 2 { // the order does not matter
			names, err := NewNames(len(pictures), func(i int) string { return filepath.FromSlash(pictures[i]) }, strings.Fields(tc.roots))
			if tc.want == "" {
				if err == nil || !strings.Contains(err.Error(), "maps of the same name") {
					t.Errorf("%s: error %v", tc.pictures, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range strings.Fields(tc.pictures) {
				got = append(got, names.Stem(filepath.FromSlash(p)))
			}
			if !slices.Equal(got, strings.Fields(tc.want)) {
				t.Errorf("%s: %q, want %s", tc.pictures, got, tc.want)
			}
			slices.Reverse(pictures)
		}
	}
}

// No name leads out of the folder of the maps.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"a.png", "../../a", "/etc/passwd", "a/../../b.png", "x.npz[3]", "[", "]", "a[../..]", "..", "./.", "a\x00b"} {
		f.Add(s, "im")
	}
	f.Fuzz(func(t *testing.T, name, root string) {
		names, err := NewNames(1, func(int) string { return name }, []string{root})
		if err != nil {
			t.Fatal(err)
		}
		for _, names.level = range []level{short, extension, whole} {
			if stem := names.Stem(name) + ".png"; !filepath.IsLocal(stem) {
				t.Errorf("%q at level %d: %q", name, names.level, stem)
			}
		}
	})
}

func BenchmarkNames(b *testing.B) {
	for b.Loop() {
		if _, err := NewNames(100_000, func(i int) string { return fmt.Sprintf("im/%06d.png", i) }, []string{"im"}); err != nil {
			b.Fatal(err)
		}
	}
}
