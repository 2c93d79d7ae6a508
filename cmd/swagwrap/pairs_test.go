package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/swag"
)

// The tensors in testdata/reference/pairs-*.npz are those that torchvision made of the pictures beside them (pairs.py). They prove the
// preprocessing, and what a user gives must agree.
func TestPairs(t *testing.T) {
	t.Parallel()
	const (
		imagenet = "mean=0.485,0.456,0.406 std=0.229,0.224,0.225"
		resized  = imagenet + " crop-mode=center resize-size=8x8 interpolation=bilinear"
	)
	for name, tc := range map[string]struct {
		file string
		args []string
		want []string // parts of what is printed
		card string   // the preprocessing on the card, or "" if fit ends with exit code 65
	}{
		"found": {"imagenet", nil, []string{`preprocessing: "` + resized + `" makes the tensors of 5 examples`, "bit for bit",
			"names of classes: "}, resized},
		"tensors are resized": {"tensor", nil, []string{"up to rounding"},
			"mean=0.5,0.5,0.5 std=0.5,0.5,0.5 crop-mode=squash interpolation=bicubic tensor=true"},
		"levels, and blue first": {"caffe", nil, []string{"bit for bit"},
			"mean=123.68,116.779,103.939 scale=1 crop-mode=squash interpolation=lanczos channels=bgr"},
		"turned": {"exif", nil, []string{"bit for bit"}, resized + " orientation=apply"},
		"two settings": {"square", nil, []string{"two settings give the same tensors", "crop-mode=center", "crop-mode=squash"},
			imagenet},
		"never resized": {"own", nil, []string{"they do not prove how others are resized"}, imagenet},
		"random":        {"augmented", nil, []string{"no preprocessing that swagwrap knows", "The nearest is"}, "none"},
		"random, given": {"augmented", []string{"--preprocess", "imagenet"}, []string{"The nearest is"},
			imagenet + " crop-mode=center crop-pct=0.875 interpolation=bilinear"},
		"off": {"imagenet", []string{"--parity", "off"}, []string{"not compared"}, "none"},
		"given, and right": {"imagenet", []string{"--preprocess", imagenet + " crop-mode=center resize-size=8"}, []string{"as given"},
			resized},
		"given in part": {"imagenet", []string{"--preprocess", imagenet}, []string{"as given"}, resized},
		"given, what the pictures leave open": {"square", []string{"--preprocess", imagenet + " crop-mode=squash"}, []string{"as given"},
			imagenet + " crop-mode=squash interpolation=bilinear"},
		"another mean": {"imagenet", []string{"--preprocess", "mean=0.5 std=0.5"}, []string{
			`the preprocessing "mean=0.5 std=0.5" does not make its tensors`, resized, "--parity off"}, ""},
		"another size":        {"imagenet", []string{"--preprocess", imagenet + " crop-mode=squash"}, []string{"does not make its tensors"}, ""},
		"another orientation": {"exif", []string{"--preprocess", resized + " orientation=ignore"}, []string{"orientation=apply"}, ""},
		"names in another order": {"imagenet", []string{"--class-names", "NAMES"}, []string{
			`class 0 is "cat" in training, and here it is "dog"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, names := filepath.Join(t.TempDir(), "posterior"), filepath.Join(t.TempDir(), "names.txt")
			if err := os.WriteFile(names, []byte("dog\ncat\neel\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for i, arg := range tc.args {
				tc.args[i] = strings.Replace(arg, "NAMES", names, 1)
			}
			code, out := fitReference(t, path, append(tc.args, "--reference", filepath.Join("testdata", "reference", "pairs-"+tc.file+".npz"),
				filepath.Join("testdata", "reference"))...)
			out = strings.Join(strings.Fields(out), " ")
			for _, want := range tc.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s, want %s", out, want)
				}
			}
			if tc.card == "" {
				if code != 65 {
					t.Errorf("exit code %d: %s", code, out)
				}
				return
			}
			p, err := swag.Open(path)
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			defer p.Close()
			if s, err := open.Preprocessing("", p.Card); err != nil || s.Words() != tc.card {
				t.Errorf("%q on the card, want %q (%v)", s.Words(), tc.card, err)
			}
		})
	}
}
