package corrupt

import (
	"flag"
	"fmt"
	"math"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/picture"
)

var published = flag.String("published", "testdata/published.npz", "what the published functions gave: see fixtures/shift/corruptions.py")

// far is the largest mean difference to the published functions in levels of 255, where it is not 0.05. A difference of
// 1 level comes from rounding down, where the last bits of a float32 decide.
var far = map[string]float64{
	"jpeg_compression":  1,   // Go's encoder rounds its transform and halves colours differently
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
		for _, c := range all {
			if c.Name == "frost" {
				continue
			}
			line, worst := "", 0.0
			for severity := 1; severity <= Severities; severity++ {
				want := read(fmt.Sprintf("%s-%s-%d", size, c.Name, severity))
				m := want.Shape[1]
				stride, sum, most := max(bytes/256, 1)|1, 0.0, 0.0
				for i := range n {
					p := picture.Picture{W: side, H: side, C: 3, Pix: pictures.Data[i*bytes:][:bytes]}
					got := c.Apply(p, severity, uint64(i)).Pix
					for j := range m {
						d := math.Abs(float64(got[j*stride]) - float64(want.Data[i*m+j]))
						sum, most = sum+d, max(most, d)
					}
				}
				mean := sum / float64(n*m)
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
