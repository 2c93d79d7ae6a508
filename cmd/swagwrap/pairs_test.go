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
		"none":              {"imagenet", []string{"--preprocess", "none"}, []string{`the preprocessing "none" does not make its tensors`, resized}, ""},
		"a card":            {"imagenet", []string{"--card", "CARD"}, []string{`the preprocessing "mean=0.5 std=0.5" does not`, resized}, ""},
		"none after a card": {"imagenet", []string{"--card", "CARD", "--preprocess", "none"}, []string{`"none" does not make`, resized}, ""},
		"a processor": {"imagenet", []string{"--preprocess", "PROCESSOR"}, []string{"does not make its tensors", "floor-crop=true",
			resized}, ""},
		"another size":        {"imagenet", []string{"--preprocess", imagenet + " crop-mode=squash"}, []string{"does not make its tensors"}, ""},
		"another orientation": {"exif", []string{"--preprocess", resized + " orientation=ignore"}, []string{"orientation=apply"}, ""},
		"names in another order": {"imagenet", []string{"--class-names", "NAMES"}, []string{
			`class 0 is "cat" in training, and here it is "dog"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, names := filepath.Join(t.TempDir(), "posterior"), filepath.Join(t.TempDir(), "names.txt")
			for name, text := range map[string]string{
				names:           "dog\ncat\neel\n",
				names + ".card": `{"preprocess": {"mean": [0.5], "std": [0.5], "image": {"crop_mode": "", "interpolation": "bilinear"}}}`,
				names + ".json": processor,
			} {
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			replace := strings.NewReplacer("NAMES", names, "CARD", names+".card", "PROCESSOR", names+".json")
			for i, arg := range tc.args {
				tc.args[i] = replace.Replace(arg)
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
			const proof = "; preprocessing as in training: 5 pictures, "
			if proved := tc.args == nil && tc.card != "none"; proved && !strings.Contains(p.Card.Parity.String(), proof) {
				t.Errorf("the card says %v, want %s", p.Card.Parity, proof)
			}
			if s, err := open.Preprocessing("", p.Card); err != nil || s.Words() != tc.card {
				t.Errorf("%q on the card, want %q (%v)", s.Words(), tc.card, err)
			}
		})
	}
}

// processor is a configuration of Hugging Face, whose crop of an odd number of pixels begins elsewhere than that of torchvision.
const processor = `{"image_processor_type": "ViTImageProcessor", "do_resize": true, "size": {"shortest_edge": 8}, "do_center_crop": true,
	"crop_size": {"height": 6, "width": 6}, "resample": 2, "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true,
	"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}`
