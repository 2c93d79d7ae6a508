package augment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/swagwrap/swagwrap/fixtures/testfile"
	"github.com/swagwrap/swagwrap/internal/picture"
)

// golden is what testdata/make.py writes; it says what the fields mean.
type golden struct {
	Pixels []struct {
		Size   [3]int // width, height, channels
		Spec   string
		At     *[2]int
		Box    *[4]int
		Steps  [][2]float64
		Out    [2]int
		SHA256 string
	}
	Colours string
	Printed map[string]string
	Draws   []struct {
		Spec    string
		Size    [2]int
		Columns map[string]histogram
	}
}

type histogram struct {
	Edges  []float64
	Counts []float64
}

func readGolden(t *testing.T) golden {
	t.Helper()
	var g golden
	testfile.JSON(t, "testdata/golden.json", &g)
	return g
}

// source is the picture that source of make.py makes: a pattern with grey, black
// and white pixels in it.
func source(w, h, c int) picture.Picture {
	p := picture.New(w, h, c)
	for i := range p.Pix {
		p.Pix[i] = byte((i*i*31 + i*7 + w*101 + h*13) >> 3)
	}
	for i := range w * h {
		s := p.Pix[i*c : (i+1)*c]
		for k := range s {
			switch {
			case i%11 == 5:
				s[k] = 255
			case i%7 == 3:
				s[k] = 0
			case i%5 == 1:
				s[k] = s[0]
			}
		}
	}
	return p
}

func parse(t testing.TB, spec string) Pipeline {
	t.Helper()
	p, err := Parse(spec)
	if err != nil {
		t.Fatalf("%s: %v", spec, err)
	}
	return p
}

func sum(pix []byte) string {
	s := sha256.Sum256(pix)
	return hex.EncodeToString(s[:])
}

// TestPixels compares with torchvision and Pillow for given parameters, bit for
// bit.
func TestPixels(t *testing.T) {
	for _, c := range readGolden(t).Pixels {
		src := source(c.Size[0], c.Size[1], c.Size[2])
		before := slices.Clone(src.Pix)
		p := parse(t, c.Spec)
		canvas := canvas{Picture: src}
		var err error
		switch o := p.ops[0].(type) {
		case *randomCrop:
			down, across, e := o.spans(src.H, src.W)
			if err = e; err == nil {
				canvas.set(cut(src, down.from(c.At[0], o.mode), across.from(c.At[1], o.mode), o.fill))
			}
		case *randomResizedCrop:
			canvas.Picture, err = resizedCrop(src, box{c.Box[0], c.Box[1], c.Box[2], c.Box[3]}, o.to, o.filter)
		case *jitter:
			for _, s := range c.Steps {
				canvas.mine()
				adjustment{int(s[0]), s[1]}.apply(canvas.Picture)
			}
		default:
			err = o.apply(&canvas, newRandom(1, pictureStream))
		}
		if err != nil {
			t.Errorf("%v %s: %v", c.Size, c.Spec, err)
			continue
		}
		if got := [2]int{canvas.W, canvas.H}; got != c.Out || sum(canvas.Pix) != c.SHA256 {
			t.Errorf("%v %s %v %v %v: %v, not torchvision's %v", c.Size, c.Spec, c.At, c.Box, c.Steps, got, c.Out)
		}
		if !bytes.Equal(src.Pix, before) {
			t.Fatalf("%v %s changes its source", c.Size, c.Spec)
		}
	}
}

// TestHue turns the hue of all 2²⁴ colours as torchvision and Pillow do it.
func TestHue(t *testing.T) {
	p := picture.New(4096, 4096, 3)
	for i := range 1 << 24 {
		p.Pix[3*i], p.Pix[3*i+1], p.Pix[3*i+2] = byte(i>>16), byte(i>>8), byte(i)
	}
	turnHue(p, 0.3)
	if sum(p.Pix) != readGolden(t).Colours {
		t.Error("not what torchvision makes of all colours")
	}
}

// chiSquare is the p-value of the hypothesis that two samples, by bins, are of
// one distribution.
func chiSquare(a, b []float64) float64 {
	var na, nb, x float64
	for i := range a {
		na, nb = na+a[i], nb+b[i]
	}
	for i := range a {
		d := math.Sqrt(nb/na)*a[i] - math.Sqrt(na/nb)*b[i]
		x += d * d / (a[i] + b[i])
	}
	return distuv.ChiSquared{K: float64(len(a) - 1)}.Survival(x)
}

// count puts values into the bins between edges.
func (h histogram) count(values []float64) []float64 {
	n := make([]float64, len(h.Counts))
	for _, v := range values {
		at, _ := slices.BinarySearch(h.Edges, v)
		n[at]++
	}
	return n
}

// columnsOf draws n times, for keys from 0 on, and returns what make.py records
// of each draw.
func columnsOf(t *testing.T, spec string, size [2]int, n int) map[string][]float64 {
	t.Helper()
	out := map[string][]float64{}
	add := func(name string, v float64) { out[name] = append(out[name], v) }
	boxed := func(b box) {
		add("top", float64(b.top))
		add("left", float64(b.left))
		add("h", float64(b.h))
		add("w", float64(b.w))
		add("area", float64(b.h*b.w))
		add("ratio", math.Log(max(float64(b.w), 0.5)/max(float64(b.h), 0.5)))
		add("topPart", (float64(b.top)+0.5)/float64(size[1]-b.h+1))
		add("leftPart", (float64(b.left)+0.5)/float64(size[0]-b.w+1))
	}
	flag := func(name string, v bool) {
		if v {
			add(name, 1)
		} else {
			add(name, 0)
		}
	}
	p := parse(t, spec)
	for key := range uint64(n) {
		if len(p.erases) > 0 {
			e, r := p.erases[0], newRandom(key, eraseStream)
			b, ok := e.draw(size[1], size[0], r)
			if ok {
				boxed(b)
			}
			flag("none", !ok)
			continue
		}
		r := newRandom(key, pictureStream)
		switch o := p.ops[0].(type) {
		case *randomCrop:
			down, across, err := o.spans(size[1], size[0])
			if err != nil {
				t.Fatal(err)
			}
			top, left := o.draw(down, across, r)
			add("top", float64(top))
			add("left", float64(left))
			add("both", float64(top*(across.spare()+1)+left))
		case *randomResizedCrop:
			boxed(o.draw(size[1], size[0], r))
		case *jitter:
			order := 0
			for _, a := range o.draw(r) {
				order = 4*order + a.property
				add(jitterNames[a.property], a.by)
			}
			add("order", float64(order))
		}
	}
	return out
}

// TestDraws compares the parameters' distributions with those of 100,000 draws of
// torchvision's. Keys are fixed, so that this does not fail by chance.
func TestDraws(t *testing.T) {
	const draws, least = 60_000, 1e-4
	tests, worst := 0, 1.0
	for _, c := range readGolden(t).Draws {
		columns := columnsOf(t, c.Spec, c.Size, draws)
		for name, h := range c.Columns {
			if len(h.Counts) == 1 { // always the same: nothing to compare but that
				if lo, hi := slices.Min(columns[name]), slices.Max(columns[name]); lo != hi {
					t.Errorf("%s of %v: %s from %v to %v, want one value", c.Spec, c.Size, name, lo, hi)
				}
				continue
			}
			p := chiSquare(h.count(columns[name]), h.Counts)
			t.Logf("%-60s %v %-10s %2d bins, p-value %.4f", c.Spec, c.Size, name, len(h.Counts), p)
			if !(p >= least) {
				t.Errorf("%s of %v: %s is not distributed as torchvision's: p-value %.2g", c.Spec, c.Size, name, p)
			}
			tests, worst = tests+1, min(worst, p)
		}
	}
	t.Logf("%d comparisons, least p-value %.4f", tests, worst)
}

// TestDrawsDiffer: the comparison sees what one would get wrong.
func TestDrawsDiffer(t *testing.T) {
	for _, c := range readGolden(t).Draws {
		if c.Spec != "RandomResizedCrop(224)" && c.Spec != "RandomCrop(32, padding=4)" {
			continue
		}
		h := c.Columns["top"]
		values := columnsOf(t, c.Spec, c.Size, 20_000)["top"]
		for i := range values {
			values[i]++
		}
		if p := chiSquare(h.count(values), h.Counts); p > 1e-12 {
			t.Errorf("%s: one pixel off, and the p-value is %g", c.Spec, p)
		}
	}
}

// binomial fails if k of n is too far from a probability: five standard errors.
func binomial(t *testing.T, what string, k, n int, p float64) {
	t.Helper()
	if z := (float64(k) - float64(n)*p) / math.Sqrt(float64(n)*p*(1-p)); math.Abs(z) > 5 {
		t.Errorf("%s: %d of %d, %.1f standard errors from %g", what, k, n, z, p)
	}
}

// TestProbabilities counts what happens to pictures, and that one does not depend
// on another.
func TestProbabilities(t *testing.T) {
	const n = 20_000
	src := picture.Picture{W: 2, H: 2, C: 3, Pix: []byte{1, 2, 30, 4, 5, 60, 7, 8, 90, 10, 11, 120}}
	for _, p := range []float64{0.3, 0.5, 0.1, 0, 1} {
		spec := fmt.Sprintf("RandomHorizontalFlip(p=%g), RandomVerticalFlip(p=%g), RandomGrayscale(p=%g)", p, p, p)
		pipeline := parse(t, spec)
		var across, down, grey, all int
		for key := range uint64(n) {
			got, err := pipeline.Picture(src, key)
			if err != nil {
				t.Fatal(err)
			}
			first := got.Pix[0]
			isGrey := got.Pix[0] == got.Pix[1]
			if isGrey {
				grey++
				first = map[byte]byte{5: 1, 11: 4, 17: 7, 23: 10}[first]
			}
			isAcross, isDown := first == 4 || first == 10, first == 7 || first == 10
			if isAcross {
				across++
			}
			if isDown {
				down++
			}
			if isAcross && isDown && isGrey {
				all++
			}
		}
		if p == 0 || p == 1 {
			if want := n * int(p); across != want || down != want || grey != want {
				t.Errorf("p=%g: %d, %d, %d of %d", p, across, down, grey, n)
			}
			continue
		}
		binomial(t, "across", across, n, p)
		binomial(t, "down", down, n, p)
		binomial(t, "grey", grey, n, p)
		binomial(t, "all", all, n, p*p*p)
	}
}

// TestErase: where and with what rectangles are filled.
func TestErase(t *testing.T) {
	const n, c, h, w = 20_000, 3, 10, 14
	for _, p := range []float64{0.3, 0.5} {
		e := parse(t, fmt.Sprintf("RandomErasing(p=%g, value=(1, 2, 3.5))", p))
		changed := 0
		for key := range uint64(n) {
			first, last := make([]float32, c*h*w), make([]float32, c*h*w)
			e.Erase(first, c, h, w, false, key)
			e.Erase(last, c, h, w, true, key)
			hit := 0
			for i := range h * w {
				a := [3]float32{first[i], first[h*w+i], first[2*h*w+i]}
				if b := [3]float32(last[3*i : 3*i+3]); a != b {
					t.Fatalf("pixel %d: %v with channels first, %v with channels last", i, a, b)
				}
				switch a {
				case [3]float32{}:
				case [3]float32{1, 2, 3.5}:
					hit++
				default:
					t.Fatalf("pixel %d is %v", i, a)
				}
			}
			if hit > 0 {
				changed++
			}
			if hit > 55 { // a third of the area, rounded up
				t.Fatalf("%d of %d pixels erased", hit, h*w)
			}
		}
		binomial(t, "erased", changed, n, p)
	}
}

// TestEraseValues: random values are normal, one for each pixel.
func TestEraseValues(t *testing.T) {
	const c, h, w = 3, 16, 12
	e := parse(t, "RandomErasing(p=1, value='random')")
	var all []float64
	for key := range uint64(4000) {
		x := slices.Repeat([]float32{99}, c*h*w)
		e.Erase(x, c, h, w, false, key)
		for k := range c {
			distinct := map[float32]bool{}
			filled := 0
			for _, v := range x[k*h*w : (k+1)*h*w] {
				if v != 99 {
					distinct[v] = true
					filled++
					all = append(all, float64(v))
				}
			}
			if len(distinct) < filled-1 {
				t.Fatalf("%d values for %d pixels of a channel", len(distinct), filled)
			}
		}
	}
	// Kolmogorov and Smirnov's test against the normal distribution.
	slices.Sort(all)
	n, d := float64(len(all)), 0.0
	for i, v := range all {
		f := distuv.UnitNormal.CDF(v)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	if p := 2 * math.Exp(-2*n*d*d); p < 1e-4 {
		t.Errorf("not normal, p-value %.2g", p)
	}
}

// TestPure: the same key gives the same picture, from any goroutine, and another
// key another one.
func TestPure(t *testing.T) {
	p := parse(t, "RandomResizedCrop(16), RandomHorizontalFlip, ColorJitter(0.4, 0.4, 0.4, 0.1), RandomErasing(p=0.9, value='random')")
	src := source(40, 30, 3)
	before := slices.Clone(src.Pix)
	both := func(key uint64) string {
		q, err := p.Picture(src, key)
		if err != nil {
			t.Error(err)
		}
		x := make([]float32, 3*16*16)
		p.Erase(x, 3, 16, 16, false, key)
		return sum(q.Pix) + fmt.Sprint(x)
	}
	want := make([]string, 50)
	seen := map[string]bool{} // pictures, and what is erased of them
	for key := range want {
		want[key] = both(uint64(key))
		seen[want[key][:64]], seen[want[key][64:]] = true, true
	}
	if distinct := len(seen); distinct < 2*len(want)-15 { // one in ten is not erased
		t.Errorf("%d keys give %d pictures and erasures", len(want), distinct)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for key := range want {
				if both(uint64(key)) != want[key] {
					t.Errorf("key %d: another picture", key)
				}
			}
		})
	}
	wg.Wait()
	if !bytes.Equal(src.Pix, before) {
		t.Error("the source has changed")
	}
}

// TestFrozen: pictures are the same in every version of the program, since saved
// statistics were computed on them.
func TestFrozen(t *testing.T) {
	p := parse(t, "RandomCrop(16, padding=4), RandomHorizontalFlip, RandomResizedCrop(12), ColorJitter(0.4, 0.4, 0.4, 0.1), RandomGrayscale(0.2)")
	var all []byte
	for key := range uint64(20) {
		q, err := p.Picture(source(16, 16, 3), key)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q.Pix...)
	}
	const want = "00a796d16bdd2e20e370ae174eb597a369d5e446d033fa2826d4db9150177106"
	if got := sum(all); got != want {
		t.Errorf("SHA-256 of 20 pictures %s, want %s", got, want)
	}
}

func TestPictureRefuses(t *testing.T) {
	tests := []struct {
		spec    string
		w, h, c int
		want    string
	}{
		{"RandomCrop(8)", 8, 7, 3, "RandomCrop(8): a picture of 8×7 pixels is too small: give padding, or pad_if_needed=True"},
		{"RandomCrop(8, padding=1)", 5, 9, 3, "a picture of 5×9 pixels is too small"},
		{"RandomCrop(2, fill=(1, 2, 3))", 8, 7, 1, "fill has 3 values, and the picture has 1 channels"},
		{"cifar", 32, 32, 3, "RandomCrop(padding=4): the size is left open"},
		{"imagenet", 32, 32, 3, "RandomResizedCrop: the size is left open"},
		{"Resize", 32, 32, 3, "Resize: the size is left open"},
		{"CenterCrop", 32, 32, 3, "CenterCrop: the size is left open"},
		{"RandomResizedCrop(4, scale=(1e-5, 1e-5), ratio=(0.1, 0.2))", 1, 1, 3, "a crop of 0×1 pixels from a picture of 1×1, want at least one"},
		{"Resize(1000)", 1, 2000, 3, "want at most 1048576 along a side"},
	}
	for _, tt := range tests {
		_, err := parse(t, tt.spec).Picture(source(tt.w, tt.h, tt.c), 1)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.spec, err, tt.want)
		}
	}
}

func TestResolve(t *testing.T) {
	tests := []struct{ spec, want string }{
		{"none", "none"},
		{"cifar", "RandomCrop((20, 30), padding=4), RandomHorizontalFlip"},
		{"imagenet", "RandomResizedCrop((20, 30)), RandomHorizontalFlip"},
		{"Resize, RandomVerticalFlip", "Resize((20, 30)), RandomVerticalFlip"},
		{"Resize(40), CenterCrop", "Resize(40), CenterCrop((20, 30))"},
		{"Resize, RandomGrayscale", "Resize((20, 30)), RandomGrayscale"},
		{"Resize((24, 34)), RandomCrop", "Resize((24, 34)), RandomCrop((20, 30))"},
		{"RandomHorizontalFlip(p=0.1)", "RandomHorizontalFlip(p=0.1)"},

		{"RandomCrop(28)", "RandomCrop(28) makes pictures of 28×28 pixels, and the network takes 30×20"},
		{"imagenet, Resize(10)", "makes pictures of 15×10 pixels, and the network takes 30×20"},
		{"RandomResizedCrop((30, 20)), ColorJitter", "makes pictures of 20×30 pixels, and the network takes 30×20"},
		{"Resize((18, 28)), RandomCrop(padding=(0, 1))", "RandomCrop((20, 30), padding=(0, 1, 0, 1)): a picture of 28×18 pixels is too small"},
	}
	for _, tt := range tests {
		p, err := parse(t, tt.spec).Resolve(20, 30)
		got := p.String()
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != tt.want || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.spec, got, tt.want)
		}
	}
	if _, err := parse(t, "cifar").Resolve(0, 5); err == nil {
		t.Error("no error for a size of 0")
	}
}

func TestCheckChannels(t *testing.T) {
	for spec, want := range map[string]string{
		"RandomCrop(4, fill=(1, 2, 3))":                 "fill has 3 values, and pictures have 1 channels",
		"RandomErasing(value=(1, 2, 3))":                "value has 3 numbers, and pictures have 1 channels",
		"RandomCrop(4, fill=7), RandomErasing(value=7)": "",
	} {
		p := parse(t, spec)
		if err := p.CheckChannels(3); err != nil {
			t.Error(err)
		}
		if err := p.CheckChannels(1); (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", spec, err, want)
		}
	}
}

func TestErasePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Pipeline{}.Erase(make([]float32, 5), 1, 2, 3, false, 0)
}

func BenchmarkPicture(b *testing.B) {
	for _, tt := range []struct {
		name, spec string
		w, h, to   int
	}{
		{"cifar", "cifar", 32, 32, 32},
		{"imagenet", "imagenet", 500, 375, 224},
		{"jitter", "ColorJitter(0.4, 0.4, 0.4)", 224, 224, 224},
		{"hue", "ColorJitter(hue=0.1)", 224, 224, 224},
	} {
		b.Run(tt.name, func(b *testing.B) {
			p, err := parse(b, tt.spec).Resolve(tt.to, tt.to)
			if err != nil {
				b.Fatal(err)
			}
			src := source(tt.w, tt.h, 3)
			b.ReportAllocs()
			key := uint64(0)
			for b.Loop() {
				if _, err := p.Picture(src, key); err != nil {
					b.Fatal(err)
				}
				key++
			}
		})
	}
}
