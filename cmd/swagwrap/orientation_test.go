package main

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// phonePictures writes pictures of 4×4 pixels, dark at the left. In upright they are stored so. In tagged those of three in
// four are stored sideways, with an Exif orientation that says how to turn them.
func phonePictures(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		orientation := []uint16{1, 6, 8, 3}[i%4]
		for _, folder := range []string{"upright", "tagged"} {
			img := image.NewGray(image.Rect(0, 0, 4, 4))
			for p := range 16 {
				x, y := p%4, p/4
				sx, sy := x, y
				if folder == "tagged" {
					switch orientation { // the stored place of an upright pixel
					case 3:
						sx, sy = 3-x, 3-y
					case 6:
						sx, sy = y, 3-x
					case 8:
						sx, sy = 3-y, x
					}
				}
				img.SetGray(sx, sy, color.Gray{uint8(60*x + 4*y + 2*i)})
			}
			var b bytes.Buffer
			if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 100}); err != nil {
				t.Fatal(err)
			}
			data := b.Bytes()
			if folder == "tagged" {
				exif := binary.LittleEndian.AppendUint16([]byte("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00"), orientation)
				exif = append(exif, make([]byte, 6)...)
				data = slices.Concat(data[:2], []byte{0xff, 0xe1, 0, byte(len(exif) + 2)}, exif, data[2:])
			}
			path := filepath.Join(dir, folder, fmt.Sprintf("%02d.jpg", i))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rowsOf returns the columns behind the path of a table.
func rowsOf(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, row := range rows {
		fmt.Fprintln(&all, row[1:])
	}
	return all.String()
}

// furthest returns the largest difference between the values of two arrays of 16 pictures.
func furthest(t *testing.T, path, other string) (most float64) {
	t.Helper()
	var all [2][]byte
	for i, at := range []string{path, other} {
		data, err := os.ReadFile(at)
		if err != nil || len(data) < 16*16*4 {
			t.Fatal(len(data), err)
		}
		all[i] = data[len(data)-16*16*4:]
	}
	for k := 0; k < len(all[0]); k += 4 {
		a, b := math.Float32frombits(binary.LittleEndian.Uint32(all[0][k:])), math.Float32frombits(binary.LittleEndian.Uint32(all[1][k:]))
		most = max(most, math.Abs(float64(a-b)))
	}
	return most
}

// While nobody chose, each command says once how many pictures have an orientation that is not applied. The card keeps the choice, in the exported model too.
func TestOrientation(t *testing.T) {
	dir := t.TempDir()
	phonePictures(t, dir, 16)
	at := func(name string) string { return filepath.Join(dir, name) }
	do := func(want string, args ...string) {
		t.Helper()
		code, printed := program(t, args...)
		if n := strings.Count(printed, "Exif orientation that is not applied"); code != 0 || (want == "") != (n == 0) || n > 1 || !strings.Contains(printed, want) {
			t.Errorf("%v: exit %d, want %q once:\n%s", args, code, want, printed)
		}
	}
	for name, spec := range map[string]string{"nobody": "mean=0.4", "pillow": "mean=0.4 orientation=pillow", "apply": "mean=0.4 orientation=apply"} {
		do("", "fit", "--task", "classes", "--preprocess", spec, "-o", at(name+".st"), "testdata/ckpt-1.onnx", "testdata/ckpt-2.onnx")
		do("", "sample", "--method", "iterates", "-o", at(name+".e"), at(name+".st"))
		do("", "score", "-o", at(name+".upright.csv"), at(name+".e"), at("upright"))
		want := map[string]string{"nobody": "note: 12 of 16 pictures have"}[name]
		do(want, "score", "-j", "3", "-b", "2", "-o", at(name+".csv"), at(name+".e"), at("tagged"))
		do("", "export", "-o", at(name+".onnx"), at(name+".e"))
		do(want, "prepare", "-o", at(name+".npy"), at(name+".onnx"), at("tagged"))
		do("", "prepare", "-o", at(name+".upright.npy"), at(name+".onnx"), at("upright"))
	}
	if rowsOf(t, at("nobody.csv")) != rowsOf(t, at("pillow.csv")) || rowsOf(t, at("nobody.csv")) == rowsOf(t, at("nobody.upright.csv")) {
		t.Error("without a choice, pictures are not as Pillow opens them")
	}
	for name, turned := range map[string]bool{"nobody": false, "pillow": false, "apply": true} {
		if d := furthest(t, at(name+".npy"), at(name+".upright.npy")); turned != (d < 0.05) {
			t.Errorf("%s: pixels differ by up to %v from those of upright pictures", name, d)
		}
	}
	code, printed := program(t, "inspect", at("apply.e"))
	if !strings.Contains(printed, `"orientation":"apply"`) {
		t.Errorf("inspect, %d: the card does not name the choice:\n%s", code, printed)
	}
	do("", "score", "--preprocess", "orientation=ignore", "-o", at("later.csv"), at("nobody.e"), at("tagged"))
	do("note: 12 of 16 pictures have", "score", "-o", at("skipped.csv"), "--resume", at("nobody.e"), at("tagged"))
}
