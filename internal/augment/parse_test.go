package augment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

const (
	imagenetMean = "mean=(0.485, 0.456, 0.406)"
	imagenetStd  = "std=(0.229, 0.224, 0.225)"
)

// TestPrinted reads what torchvision's Compose prints.
func TestPrinted(t *testing.T) {
	normalize := "Normalize(" + imagenetMean + ", " + imagenetStd + ")"
	changes := "RandomVerticalFlip(p=0.3), " +
		"ColorJitter(brightness=(0.6, 1.4), contrast=(0.75, 1.25), saturation=(0.5, 1.5), hue=(-0.1, 0.1)), ColorJitter(brightness=(0.8, 1.2)), " +
		"RandomGrayscale(p=0.2), Normalize(mean=(0.5,), std=(0.25,)), " +
		"RandomErasing(p=0.25, value='random'), RandomErasing(scale=(0.1, 0.2), value=(1, 2, 3.5)), RandomErasing"
	all := "Resize(256), Resize((300, 260), interpolation='bicubic'), RandomCrop((240, 230), padding=(1, 2, 3, 4)), " +
		"RandomResizedCrop((224, 192), scale=(0.2, 0.9), ratio=(0.5, 2), interpolation='nearest'), CenterCrop(64), " + changes
	want := map[string]string{
		"v1 cifar":    "RandomCrop(32, padding=4), RandomHorizontalFlip, " + normalize,
		"v2 cifar":    "RandomCrop(32, padding=4), RandomHorizontalFlip, " + normalize,
		"v1 imagenet": "RandomResizedCrop(224), RandomHorizontalFlip, " + normalize,
		"v2 imagenet": "RandomResizedCrop(224), RandomHorizontalFlip, " + normalize,
		"v1 all":      all,
		"v2 all":      all,
		"v2 crop":     "RandomCrop(32, padding=(1, 2, 3, 4), pad_if_needed=True, fill=3, padding_mode='reflect'), " + normalize,
		"v2 nested":   "RandomCrop(28), RandomHorizontalFlip(p=0.3)",
		"v1 tensors":  "RandomCrop(8), " + normalize,
	}
	printed := readGolden(t).Printed
	if len(printed) != len(want) {
		t.Errorf("%d printed pipelines, want %d", len(printed), len(want))
	}
	for name, text := range printed {
		p, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		if got := p.String(); got != want[name] {
			t.Errorf("%s:\n%s\ngot  %s\nwant %s", name, text, got, want[name])
		}
	}
}

func TestParse(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"none", "none"},
		{"cifar", "RandomCrop(padding=4), RandomHorizontalFlip"},
		{"imagenet", "RandomResizedCrop, RandomHorizontalFlip"},
		{"cifar, ColorJitter(0.2)", "RandomCrop(padding=4), RandomHorizontalFlip, ColorJitter(brightness=(0.8, 1.2))"},
		{"RandomCrop(32, padding=4), RandomHorizontalFlip", "RandomCrop(32, padding=4), RandomHorizontalFlip"},
		{"RandomCrop(32, 4)\n\n RandomHorizontalFlip() # half of them\n", "RandomCrop(32, padding=4), RandomHorizontalFlip"},
		{"transforms.Compose([\n  T.RandomCrop(size=[28, 24], padding=(1,)),\n  v2.RandomHorizontalFlip(.25),\n  transforms.ToTensor(),\n])",
			"RandomCrop((28, 24), padding=1), RandomHorizontalFlip(p=0.25)"},
		{"RandomCrop(8, padding=(1, 2), padding_mode=\"edge\", fill=(7, 7, 7.9))", "RandomCrop(8, padding=(1, 2, 1, 2), fill=7, padding_mode='edge')"},
		// An order of its own has only what version 2 prints.
		{"RandomCrop(8, padding=[1, 2, 3, 4], pad_if_needed=False, fill=0, padding_mode=edge)", "RandomCrop(8, padding=(1, 2, 3, 4), padding_mode='edge')"},
		{"RandomResizedCrop(224, (0.5, 1.0), (3/4, 4. / 3), interpolation=InterpolationMode.BICUBIC)", "RandomResizedCrop(224, scale=(0.5, 1), interpolation='bicubic')"},
		{"RandomResizedCrop(224, interpolation=3, antialias=None)", "RandomResizedCrop(224, interpolation='bicubic')"},
		{"ToImage(), RandomResizedCrop(224, antialias=True)", "RandomResizedCrop(224)"},
		{"ToTensor, Resize(8, interpolation='nearest', antialias=False)", "Resize(8, interpolation='nearest')"},
		{"ColorJitter(0.4, (0.5, 1), saturation=0, hue=(-0.2, 0.1))", "ColorJitter(brightness=(0.6, 1.4), contrast=(0.5, 1), hue=(-0.2, 0.1))"},
		{"ColorJitter(2)", "ColorJitter(brightness=(0, 3))"},
		{"RandomErasing(0.25, value=0, inplace=True)", "RandomErasing(p=0.25)"},
		{"RandomErasing(p=0.25, scale=(0.02, 0.33), ratio=(0.3, 3.3), inplace=False)", "RandomErasing(p=0.25)"}, // printed only within Compose
		{"Normalize(0.5, std=[0.25])", "Normalize(mean=(0.5,), std=(0.25,))"},
		{"Normalize((1/2, 0, -1e-3), (1, 2, 3))", "Normalize(mean=(0.5, 0, -0.001), std=(1, 2, 3))"},
		{"Resize((256, 256)), CenterCrop((224, 224))", "Resize((256, 256)), CenterCrop(224)"},

		{"", "empty, want none, cifar, imagenet, or transforms"},
		{" # nothing\n", "empty, want"},
		{"RandAugment(2, 9)", "RandAugment is not supported, want CenterCrop, ColorJitter, Normalize, RandomCrop, RandomErasing, RandomGrayscale, RandomHorizontalFlip, " +
			"RandomResizedCrop, RandomVerticalFlip, Resize: save what the training loader yields as an array instead (BNData)"},
		{"train = T.Compose([T.RandomCrop(8)])", "RandomCrop(8)"},
		{"Lambda(lambda x: x * 2)", "Lambda is not supported, want"},
		{"RandomApply([ColorJitter(0.4)], p=0.8)", "RandomApply is not supported, want"},
		{"x =", "line 2: got ')', want primary expression"},
		{"RandomHorizontalFlip\nRandomVerticalFlip\r\n# and\ncifar\n", "RandomHorizontalFlip, RandomVerticalFlip, RandomCrop(padding=4), RandomHorizontalFlip"},
		{"MixUp(alpha=0.2)", "MixUp is not supported"},
		{"GaussianBlur(kernel_size=(5, 5), sigma=(0.1, 2.0))", "GaussianBlur is not supported"},
		{"cifer", "cifer is not supported"},
		{"cifar RandomVerticalFlip", "line 1: got identifier, want ',': want transforms with commas or line ends between"},
		{"RandomCrop(32", "line 2: got end of file, want ')'"},
		{"Compose([RandomCrop(32)", "line 2: got ')', want ']'"},
		{"Compose([RandomCrop(32)]", "line 2: got end of file, want ')'"},
		{"Compose", "no transforms in Compose"},
		{"5", "want a transform"},
		{"RandomCrop(32, padding=-1)", "RandomCrop: padding is -1, want whole numbers from 0"},
		{"RandomCrop(32, padding=(1, 2, 3))", "RandomCrop: padding is (1, 2, 3), want whole numbers from 0 to 1048576: one, two (left and right"},
		{"RandomCrop(0)", "RandomCrop: size is 0, want whole numbers from 1"},
		{"RandomCrop(2.5)", "RandomCrop: size is 2.5, want whole"},
		{"RandomCrop((1, 2, 3))", "RandomCrop: size is (1, 2, 3), want"},
		{"RandomCrop('32')", "RandomCrop: size is 32, want"},
		{"RandomCrop(32, fill=256)", "fill is 256, want levels from 0 to 255"},
		{"RandomCrop(32, fill=(1, 2))", "fill is (1, 2), want levels"},
		{"RandomCrop(32, padding_mode='wrap')", "padding_mode is wrap, want constant, edge, reflect or symmetric"},
		{"RandomCrop(32, pad_if_needed=1)", "pad_if_needed is 1, want True or False"},
		{"RandomCrop(32, pad=4)", "RandomCrop: argument pad is not known, want size, padding, pad_if_needed, fill, padding_mode"},
		{"RandomCrop(32, size=4)", "RandomCrop: size given twice"},
		{"RandomCrop(size=4, size=4)", "RandomCrop: size given twice"},
		{"RandomCrop(size=4, 4)", "want a named argument"},
		{"RandomHorizontalFlip(0.5, 0.5)", "2 arguments, want at most 1: p"},
		{"RandomHorizontalFlip(p=1.5)", "p is 1.5, want a number from 0 to 1"},
		{"RandomHorizontalFlip(p=-0.1)", "p is -0.1, want"},
		{"RandomHorizontalFlip(p=nan)", "p is nan, want"},
		{"RandomHorizontalFlip(p=1e999)", "line 1: invalid float literal"},
		{"RandomHorizontalFlip(p=x(1))", "RandomHorizontalFlip: p: x(...), want a value"},
		{"RandomHorizontalFlip(p={})", "RandomHorizontalFlip: p: want a number, a word or brackets"},
		{"RandomHorizontalFlip(p=1*2)", "want a number, a word or brackets"},
		{"RandomHorizontalFlip())", "one too many"},
		{"'(' ) + f( ')'", "want transforms with commas"},
		{"RandomHorizontalFlip(p=1/0)", "division by zero"},
		{"RandomResizedCrop(8, scale=(1, 0.5))", "scale is (1, 0.5), want two numbers from 0, the smaller first"},
		{"RandomResizedCrop(8, scale=(0, 0))", "scale is (0, 0), want a part of the area above 0"},
		{"RandomResizedCrop(8, scale=0.5)", "scale is 0.5, want"},
		{"RandomResizedCrop(8, ratio=(0, 1))", "ratio is (0, 1), want two positive numbers, the smaller first"},
		{"RandomResizedCrop(8, interpolation='area')", "interpolation is area, want nearest, bilinear"},
		{"RandomResizedCrop(8, interpolation=9)", "interpolation is 9, want"},
		{"ToImage, RandomResizedCrop(8, antialias=False)", "antialias is False, want True: a tensor is resized with other pixels then"},
		{"Resize(8, max_size=10)", "max_size is 10, want None"},
		{"ColorJitter(-1)", "brightness is -1, want a number from 0"},
		{"ColorJitter(hue=0.6)", "hue is 0.6, want a number from 0 to 0.5"},
		{"ColorJitter(hue=(-0.6, 0))", "hue is (-0.6, 0), want"},
		{"ColorJitter(contrast=(2, 1))", "contrast is (2, 1), want"},
		{"RandomErasing(scale=(0.1, 1.5))", "scale is (0.1, 1.5), want two numbers from 0 to 1"},
		{"RandomErasing(value='mean')", "value is mean, want a number, three, or 'random'"},
		{"RandomErasing(value=1e300)", "value is 1e+300, want -1000000 to 1000000"},
		{"RandomErasing(count=3)", "argument count is not known, want p, scale, ratio, value, inplace"},
		{"RandomErasing, Normalize(0.5, 0.5)", "Normalize: after RandomErasing, which is done on normalised values here: want Normalize before it"},
		{"Normalize(0.5, 0.5), Normalize(0.5, 0.5)", "Normalize: a second time"},
		{"Normalize(0.5, 0.5), RandomCrop(8)", "RandomCrop: after Normalize, want it before"},
		{"RandomErasing, RandomHorizontalFlip", "RandomHorizontalFlip: after RandomErasing, want it before"},
		{"Normalize(0.5)", "Normalize: std is missing"},
		{"Normalize(0.5, 0)", "std is 0, want 1e-06 to 1000000"},
		{"Normalize((1, 2), 1)", "mean is (1, 2), want a number for each channel"},
		{"RandomCrop(np.array(3))", "np.array(...), want a value"},
		{"RandomCrop(" + strings.Repeat("(", 1000), "brackets too deep"},
		{strings.Repeat("Compose(", 1000), "brackets too deep"},
		{strings.Repeat(" ", maxText+1), "65537 bytes of text, want at most 65536"},
	}
	for _, tt := range tests {
		p, err := Parse(tt.spec)
		got := p.String()
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != tt.want || !strings.HasPrefix(got, tt.want) && !strings.Contains(got, tt.want) {
			t.Errorf("%.80q:\ngot  %s\nwant %s", tt.spec, got, tt.want)
		}
	}
}

// TestText: a pipeline survives a model card.
func TestText(t *testing.T) {
	p := parse(t, "cifar, Normalize(0.5, 0.25), RandomErasing")
	text, err := p.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var q Pipeline
	if err := q.UnmarshalText(text); err != nil || !q.Equal(p) || !slices.Equal(q.Mean, []float64{0.5}) || !slices.Equal(q.Std, []float64{0.25}) {
		t.Errorf("%s: %v, %v", text, q, err)
	}
	if !q.Erases() || q.None() || q.Equal(parse(t, "cifar")) || parse(t, "cifar").Erases() || !parse(t, "none").None() || !(Pipeline{}).None() {
		t.Error("Erases, None or Equal")
	}
	if err := q.UnmarshalText([]byte("x")); err == nil {
		t.Error("no error")
	}
}

// FuzzParse: no panic, and what is read is written so that it is read again to
// the same.
func FuzzParse(f *testing.F) {
	for _, spec := range []string{
		"none", "cifar", "imagenet, ColorJitter(0.4, (0.5, 1), hue=.1)", "Compose([RandomCrop((3, 5), [1, 2], fill=(1, 2, 3), padding_mode='edge')])",
		"Compose(\n  RandomErasing(p=0.25, scale=(0.02, 0.33), ratio=(0.3, 3.3), inplace=False)\n)",
		"Resize(3), Resize((4, 4)), CenterCrop, Normalize(tensor([0.5]), 1/3), RandomErasing(value=(1, 2, 3))",
		"RandomResizedCrop(8, scale=(1e-3, 1), interpolation=bilinear), RandomGrayscale, RandomVerticalFlip(p=.3)",
	} {
		f.Add(spec)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		var p Pipeline
		var err error
		reliability.Heap(t, len(spec), func() { p, err = Parse(spec) })
		if err != nil {
			return
		}
		q, err := Parse(p.String())
		if err != nil {
			t.Fatalf("%q is read as %s, which is not read: %v", spec, p, err)
		}
		if !q.Equal(p) {
			t.Fatalf("%q is read as %s, and that as %s", spec, p, q)
		}
	})
}

func TestReadFile(t *testing.T) {
	for text, want := range map[string]string{
		"Compose(\n    RandomCrop(size=(32, 32), padding=4)\n    ToTensor()\n)\n": "RandomCrop(32, padding=4)",
		"hflip: 0.5":                   "line 1: got ':'",
		strings.Repeat("#", maxText+1): "want a regular file of at most 65536 bytes",
	} {
		path := filepath.Join(t.TempDir(), "spec.txt")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		p, err := ReadFile(path)
		got := p.String()
		if err != nil {
			got = err.Error()
			if !strings.HasPrefix(got, path+": ") {
				t.Errorf("%s: no path in front", got)
			}
		}
		if err == nil && got != want || !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, err := ReadFile("testdata/missing.txt"); err == nil || err.Error() != "testdata/missing.txt: no such file or directory" {
		t.Error(err)
	}
}
