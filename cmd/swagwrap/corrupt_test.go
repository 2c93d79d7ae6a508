package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// writePictures writes n small pictures that all differ.
func writePictures(t *testing.T, dir string, n int) {
	t.Helper()
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		img := image.NewGray(image.Rect(0, 0, 8, 8))
		for p := range 64 {
			img.SetGray(p%8, p/8, color.Gray{Y: uint8(i*p/16 + i)})
		}
		var b bytes.Buffer
		if err := jpeg.Encode(&b, img, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(photograph(dir, i), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func photograph(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("%05d.jpg", i)) }

// program runs the program and returns its exit code and what it says.
func program(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out strings.Builder
	return run(t.Context(), append([]string{"swagwrap"}, args...), &out, &out), out.String()
}

// pictureEnsemble makes an ensemble that takes pictures.
func pictureEnsemble(t *testing.T, dir string, members int) string {
	t.Helper()
	p, e := filepath.Join(dir, "p.safetensors"), filepath.Join(dir, "e.safetensors")
	for _, args := range [][]string{
		{"fit", "-q", "--task", "classes", "--preprocess", "input-size=4", "-o", p, filepath.Join("testdata", "ckpt-1.onnx"), filepath.Join("testdata", "ckpt-2.onnx")},
		{"sample", "-q", "-n", fmt.Sprint(members), "--bn-data", filepath.Join("testdata", "images.npz"), "-o", e, p},
	} {
		if code, out := program(t, args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, out)
		}
	}
	return e
}

// A hundred files among ten thousand that are no pictures, or only the first
// part of one, cost a hundred rows: the other rows have the bytes that they have
// without them.
func TestScoreCorruptPictures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pictures, e := filepath.Join(dir, "pictures"), pictureEnsemble(t, dir, 2)
	const every = 100
	n, told := 10000, "100 of 10,000 rows"
	if testing.Short() {
		n, told = 2000, "20 of 2,000 rows"
	}
	writePictures(t, pictures, n)
	score := func(name string) (int, string, [][]byte) {
		path := filepath.Join(dir, name)
		code, printed := program(t, "score", "--on-error", "skip", "--probs", "-o", path, e, pictures)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v: %s", err, printed)
		}
		return code, printed, bytes.SplitAfter(b, []byte("\n"))
	}
	code, printed, clean := score("clean.csv")
	if code != 0 || len(clean) != n+2 { // a header, and nothing behind the last line
		t.Fatalf("exit code %d, %d lines: %s", code, len(clean), printed)
	}
	for i := 7; i < n; i += every {
		path := photograph(pictures, i)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		broken := [][]byte{nil, []byte("not a picture\n"), whole[:len(whole)/2], whole[:3]}[i/every%4]
		if err := os.WriteFile(path, broken, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	code, printed, got := score("got.csv")
	if code != 3 || !strings.Contains(printed, "got.csv: "+told+" have an error and no prediction") || len(got) != len(clean) {
		t.Errorf("exit code %d, %d lines: %s", code, len(got), printed)
	}
	for k := range clean {
		i := k - 1
		switch broken := k > 0 && i < n && i%every == 7; {
		case !broken && !bytes.Equal(got[k], clean[k]):
			t.Errorf("row %d: %s, want %s", i, got[k], clean[k])
		case broken && !(bytes.HasPrefix(got[k], []byte(photograph(pictures, i)+",,,,,,,,,,")) && bytes.Contains(got[k][1:], []byte(photograph(pictures, i)+": "))):
			t.Errorf("row %d: %s", i, got[k])
		}
	}
}
