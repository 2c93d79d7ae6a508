package corrupt

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color/palette"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
)

var ice = flag.String("ice", "", "a folder with photographs, and with the frost.json that testdata/frost.py writes there")

var published = flag.String("published", "testdata/published.npz", "what the published functions gave: see fixtures/shift/corruptions.py")

// far is the largest mean difference to the published functions in levels of 255, where it is not 0.05. A difference of
// 1 level comes from rounding down, where the last bits of a float32 decide. fixtures/shift/README.md has the differences on 100
// pictures of each size.
var far = map[string]float64{
	"jpeg_compression":  1.5, // Go's encoder rounds its transform and halves colours differently
	"elastic_transform": 0.2, // OpenCV and SciPy interpolate in float32
	"defocus_blur":      0.1, // OpenCV filters by Fourier transform
}

func TestPublished(t *testing.T) {
	f, err := numpy.Open(*published)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read := func(key string) numpy.Array {
		a, err := f.Read(key, numpy.Values)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, size := range []string{"small", "large"} {
		pictures := read(size)
		n, side := pictures.Shape[0], pictures.Shape[1]
		bytes := side * side * 3
		pictured, _ := Parse("all", Pictures)
		for _, c := range pictured {
			line, worst := "", 0.0
			for severity := 1; severity <= Severities; severity++ {
				want := read(fmt.Sprintf("%s-%s-%d", size, c.Name, severity))
				m := want.Shape[1]
				stride, sum, most := 1, 0.0, 0.0
				if m < bytes {
					stride = max(bytes/256, 1) | 1
				}
				var ours, theirs []float64
				rows := want.Shape[0]
				for k := range rows {
					i := k
					if rows < n {
						i = severity - 1 + 5*k
					}
					p := picture.Picture{W: side, H: side, C: 3, Pix: pictures.Data[i*bytes:][:bytes]}
					got := c.Picture(p, severity, uint64(i)).Pix
					for j := range m {
						d := math.Abs(float64(got[j*stride]) - float64(want.Data[k*m+j]))
						sum, most = sum+d, max(most, d)
						if c.Name == "frost" {
							ours, theirs = append(ours, float64(got[j*stride])), append(theirs, float64(want.Data[k*m+j]))
						}
					}
				}
				if c.Name == "frost" { // see TestFrost
					a, b := stat.PopStdDev(ours, nil), stat.PopStdDev(theirs, nil)
					line += fmt.Sprintf(" %.0f±%.0f (%.0f±%.0f)", stat.Mean(ours, nil), a, stat.Mean(theirs, nil), b)
					continue
				}
				mean := sum / float64(rows*m)
				worst = max(worst, mean)
				line += fmt.Sprintf(" %.3f (%.0f)", mean, most)
			}
			t.Logf("%s %-18s mean and largest difference by severity:%s", size, c.Name, line)
			if worst > max(far[c.Name], .05) {
				t.Errorf("%s %s: mean difference %.3f levels", size, c.Name, worst)
			}
		}
	}
}

// Frost on photographs is that of the published function, to the bit: see testdata/frost.py. With -ice FOLDER it is that on the
// photographs of the folder.
func TestIce(t *testing.T) {
	ofY := func(k, h, w int) picture.Picture {
		p := picture.New(w, h, 3)
		for i := range p.Pix {
			y, x, c := i/3/w, i/3%w, i%3
			p.Pix[i] = byte(7*y*y + 13*x + 5*x*y + 50*c + 31*k)
		}
		return p
	}
	frosts, _ := Parse("frost", Pictures)
	frost, path, stride := frosts[0], "testdata/frost.json", 997
	for k := 1; k <= drawn; k++ {
		frost.Ice = append(frost.Ice, ofY(k, 240+k, 260-k))
	}
	if *ice != "" {
		var err error
		if frost.Ice, err = Ice(*ice, 0); err != nil {
			t.Fatal(err)
		}
		path, stride = filepath.Join(*ice, "frost.json"), 1
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Size, Severity int
		Seed           uint64
		Want           []int
	}
	if err := json.Unmarshal(content, &cases); err != nil || len(cases) != 30 {
		t.Fatal(len(cases), err)
	}
	for _, x := range cases {
		got := frost.Picture(ofY(9, x.Size, x.Size), x.Severity, x.Seed).Pix
		for i, v := range x.Want {
			if int(got[i*stride]) != v {
				t.Fatalf("%d pixels, severity %d, seed %d: value %d is %d, want %d", x.Size, x.Severity, x.Seed, i*stride, got[i*stride], v)
			}
		}
	}
	frost.Ice = []picture.Picture{ofY(1, 241, 259)}
	if err := frost.FitsIce(240, 241); err == nil || err.Error() != "photograph 1 of ice has 259×241 pixels, want more than 240×241" || frost.FitsIce(258, 240) != nil || frost.FitsIce(48, 63) == nil {
		t.Errorf("a photograph that is too small: %v", err)
	}
}

// The ice that frost draws is like that of the authors' photographs. The numbers are of 500 random cuts of them, shrunk as
// for CIFAR-10-C.
func TestFrost(t *testing.T) {
	const n, side = 200, 32
	var colour [3]float64
	var brightness, contrast, rough []float64
	for seed := range uint64(n) {
		ice := frost(newRaster(side, side, 3), conditions{4, true, nil, &random{seed: seed}})
		var grey []float64
		for i, v := range ice.v {
			v *= 255 / .45
			if colour[i%3] += v / (n * side * side); i%3 == 0 {
				grey = append(grey, 0)
			}
			grey[i/3] += v / 3
		}
		for i := 1; i < len(grey); i++ {
			if i%side != 0 {
				rough = append(rough, math.Abs(grey[i]-grey[i-1]))
			}
		}
		mean, std := stat.PopMeanStdDev(grey, nil)
		brightness, contrast = append(brightness, mean), append(contrast, std)
	}
	for _, c := range []struct {
		what       string
		got, want  float64
		difference float64
	}{
		{"red", colour[0], 144, 10}, {"green", colour[1], 165, 10}, {"blue", colour[2], 177, 10},
		{"brightness between cuts", stat.StdDev(brightness, nil), 39, 6},
		{"contrast", stat.Mean(contrast, nil), 22, 6}, {"roughness", stat.Mean(rough, nil), 19, 4},
	} {
		t.Logf("%s: %.1f, photographs %.0f", c.what, c.got, c.want)
		if !(math.Abs(c.got-c.want) < c.difference) {
			t.Errorf("%s: %.1f, want %.0f ± %.0f", c.what, c.got, c.want, c.difference)
		}
	}
}

// Photographs of ice are read with bounded memory.
func TestIceMemory(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 300, 200))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.png", "b.png", "c.png"} {
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const one, decoding = 3 * 300 * 200, 5 * 300 * 200 // bytes that stay, and bytes while it is decoded
	if p, err := Ice(dir, 2*one+decoding); err != nil || len(p) != 3 {
		t.Errorf("%d photographs, %v", len(p), err)
	}
	if _, err := Ice(dir, 2*one+decoding-1); err == nil || err.Error() != filepath.Join(dir, "c.png")+": decoding 300×200 pixels takes 0 MiB, and 0 are left for photographs of ice: Memory SIZE allows more" {
		t.Errorf("error %v", err)
	}
}

// FuzzIce: a photograph of any bytes takes little memory, and is an error or a picture.
func FuzzIce(f *testing.F) {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 9, 9)), nil); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	b.Reset()
	if err := png.Encode(&b, image.NewPaletted(image.Rect(0, 0, 9, 9), palette.Plan9)); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, photograph []byte) {
		if err := os.WriteFile(filepath.Join(dir, "a"), photograph, 0o666); err != nil {
			t.Fatal(err)
		}
		const memory = 16 << 20
		reliability.Heap(t, 64*len(photograph), func() {
			all, err := Ice(dir, memory)
			if err == nil && (len(all) != 1 || len(all[0].Pix) != 3*all[0].W*all[0].H || len(all[0].Pix) > memory) {
				t.Errorf("%d photographs, %d×%d", len(all), all[0].W, all[0].H)
			}
		})
	})
}
