package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// Pictures saved as one array of N×H×W×4, as most programs do it, are predicted as they
// are from files, to the last digit.
func TestScoreArrayOfPictures(t *testing.T) {
	t.Parallel()
	const n, side = 5, 9
	dir := t.TempDir()
	e, array := pictureEnsemble(t, dir, 2), filepath.Join(dir, "pictures.npy")
	all := numpy.Header("|u1", n, side, side, 4)
	args := []string{"score", "-q", "-o", filepath.Join(dir, "files.csv"), e}
	for i := range n {
		img := image.NewNRGBA(image.Rect(0, 0, side, side))
		for p := range img.Pix {
			img.Pix[p] = byte((p*p + 1) * (i + 3) / 2)
		}
		all = append(all, img.Pix...)
		var b bytes.Buffer
		if err := png.Encode(&b, img); err != nil {
			t.Fatal(err)
		}
		args = append(args, filepath.Join(dir, fmt.Sprint(i)+".png"))
		if err := os.WriteFile(args[len(args)-1], b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(array, all, 0o666); err != nil {
		t.Fatal(err)
	}
	var rows [2][]byte
	for i, args := range [][]string{args, {"score", "-q", "-o", filepath.Join(dir, "array.csv"), e, array}} {
		if code, printed := program(t, args...); code != 0 {
			t.Fatalf("exit code %d: %s", code, printed)
		}
		b, err := os.ReadFile(args[3])
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			_, numbers, _ := bytes.Cut(line, []byte(","))
			rows[i] = append(rows[i], numbers...)
		}
	}
	if len(rows[0]) == 0 || !bytes.Equal(rows[0], rows[1]) {
		t.Errorf("files: %s\narray: %s", rows[0], rows[1])
	}
}
