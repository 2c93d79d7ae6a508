package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/preprocess"
)

// saved writes an array and returns its path.
func saved(t *testing.T, dtype string, values any, shape ...int) string {
	t.Helper()
	var b bytes.Buffer
	b.Write(numpy.Header(dtype, shape...))
	if err := binary.Write(&b, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestArrays: what Auto takes arrays for, and what it refuses.
func TestArrays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	pixels := make([]float32, 40*3*4*4)
	for i := range pixels {
		pixels[i] = rng.Float32()
	}
	mapped := func(f func(float32) float32) []float32 {
		out := make([]float32, len(pixels))
		for i, v := range pixels {
			out[i] = f(v)
		}
		return out
	}
	features := make([]byte, 40*48)
	for i := range features {
		features[i] = byte(rng.IntN(256))
	}
	imagenet := preprocess.Settings{Mean: []float64{0.485, 0.456, 0.406}, Std: []float64{0.229, 0.224, 0.225}}
	levels := preprocess.Settings{Mean: []float64{123.675, 116.28, 103.53}, Std: []float64{58.395, 57.12, 57.375}}
	grey := preprocess.Settings{Mean: []float64{0.13}, Std: []float64{0.31}}
	same := func(v float32) float32 { return v }
	normalise := func(v float32) float32 { return (v - 0.45) / 0.226 }
	pictures, row, matrix := []int{40, 3, 4, 4}, []int{40, 48}, []int{40, 6, 8}
	for _, tc := range []struct {
		name    string
		values  any
		shape   []int
		card    preprocess.Settings
		arrays  Arrays
		seen    bool
		refused string
	}{
		{"pixels", mapped(same), pictures, imagenet, Auto, false, ""},
		{"pixels, bicubic", mapped(func(v float32) float32 { return v*1.0005 - 0.0002 }), pictures, imagenet, Auto, false, ""},
		{"loader's batches", mapped(normalise), pictures, imagenet, Auto, true, ""},
		{"loader's batches, said to be pixels", mapped(normalise), pictures, imagenet, Pixels, false, ""},
		{"pixels, said to be seen", mapped(same), pictures, imagenet, Seen, true, ""},
		{"nothing to normalise", mapped(normalise), pictures, preprocess.Settings{}, Auto, true, ""},
		{"0 to 255", mapped(func(v float32) float32 { return 255 * v }), pictures, imagenet, Auto, false, "look like pixels from 0 to 255"},
		{"0 to 255, as the mean is", mapped(func(v float32) float32 { return 255 * v }), pictures, levels, Auto, false, ""},
		{"0 to 1, and the mean is for 0 to 255", mapped(same), pictures, levels, Auto, false, "multiply the pixels by 255"},
		{"0 to 1, said to be pixels, and the mean is for 0 to 255", mapped(same), pictures, levels, Pixels, false, "multiply the pixels by 255"},
		{"loader's batches, and the mean is for 0 to 255", mapped(normalise), pictures, levels, Auto, true, ""},
		{"normalised twice", mapped(func(v float32) float32 { return normalise(normalise(v)) }), pictures, imagenet, Auto, false, "cannot tell"},
		{"mean 0", mapped(same), pictures, preprocess.Settings{Std: []float64{0.5}}, Auto, false, "cannot tell"},
		{"a row, normalised", mapped(func(v float32) float32 { return (v - 0.13) / 0.31 }), row, grey, Auto, true, ""},
		{"a row of pixels", mapped(same), row, grey, Auto, false, ""},
		{"uint8 pictures", features, pictures, imagenet, Auto, false, ""},
		{"uint8 pictures, said to be seen", features, pictures, imagenet, Seen, false, ""},
		{"uint8 features", features, row, preprocess.Settings{}, Auto, true, ""},
		{"uint8 features, with a mean", features, row, grey, Auto, false, ""},
		{"uint8 features, said to be pixels", features, row, preprocess.Settings{}, Pixels, false, ""},
		{"uint8 matrices", features, matrix, preprocess.Settings{}, Auto, false, "cannot tell"},
		{"uint8 matrices, said to be seen", features, matrix, preprocess.Settings{}, Seen, true, ""},
	} {
		dtype, first := "<f4", float32(0)
		if b, ok := tc.values.([]byte); ok {
			dtype, first = "|u1", float32(b[0])
		} else {
			first = tc.values.([]float32)[0]
		}
		var shape []int64
		for _, d := range tc.shape[1:] {
			shape = append(shape, int64(d))
		}
		d, err := Open([]string{saved(t, dtype, tc.values, tc.shape...)}, Options{Shape: shape, Preprocess: tc.card, Arrays: tc.arrays})
		if tc.refused != "" {
			if !errors.Is(err, ErrArrays) && !strings.Contains(tc.refused, "multiply") || !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("%s: %v, want %q", tc.name, err, tc.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		x := make([]float32, 48)
		if err := d.Read(Floats(x), 0); err != nil {
			t.Fatal(err)
		}
		if AsSeen(d) != tc.seen || tc.seen != (x[0] == first) {
			t.Errorf("%s: seen %v, want %v; %v became %v", tc.name, AsSeen(d), tc.seen, first, x[0])
		}
	}
	for _, a := range []Arrays{Pixels, Seen, Auto} {
		if b, err := ParseArrays(a.String()); err != nil || a != b {
			t.Errorf("%v: %v, %v", a, b, err)
		}
	}
	if _, err := ParseArrays("floats"); err == nil {
		t.Error("no error for another word")
	}
}
