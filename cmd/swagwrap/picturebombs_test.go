package main

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
)

// Small files of large pictures are told by their headers: each has a row that says how
// much memory it needs, and none takes it. TestScoreBombsOften decodes them.
func TestScoreBombs(t *testing.T) {
	t.Parallel()
	peak, rows := scoreBombs(t, 32, 0, "--memory", "200M")
	if n := strings.Count(rows, ": decoding 10000×10000 pixels takes 763 MiB, want at most 200: --memory 763M allows it"); n != 32 {
		t.Errorf("%d of 32 rows say what decoding takes: %s", n, rows)
	}
	if peak > 200<<20 {
		t.Errorf("%d MB", peak>>20)
	}
}

// scoreBombs scores n pictures of 100 million pixels, of which the files have that many
// rows, and one whose header says 65,500², all at once. It returns the most memory that
// it took, and the rows.
func scoreBombs(t *testing.T, n, have int, args ...string) (peak int64, rows string) {
	t.Helper()
	dir := t.TempDir()
	e := pictureEnsemble(t, dir, 2)
	pictures, first := filepath.Join(dir, "pictures"), filepath.Join(dir, "pictures", "0.png")
	if err := os.Mkdir(pictures, 0o777); err != nil {
		t.Fatal(err)
	}
	write := func(path string, b []byte) {
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write(first, blackPNG(10000, have))
	write(filepath.Join(pictures, "huge.png"), blackPNG(65500, 0))
	for i := 1; i < n; i++ {
		if err := os.Link(first, filepath.Join(pictures, fmt.Sprint(i)+".png")); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "out.csv")
	c := exec.Command(executable(t, dir), append(append([]string{"score", "-q", "-j", "32", "--on-error", "skip", "-o", out}, args...), e, pictures)...)
	printed, peak := measured(t, c)
	b, err := os.ReadFile(out)
	if err != nil || c.ProcessState.ExitCode() != 3 {
		t.Fatalf("exit code %d: %v: %s", c.ProcessState.ExitCode(), err, printed)
	}
	if !bytes.Contains(b, []byte("huge.png: PNG: 65500×65500 pixels, want at most")) || bytes.Count(b, []byte("\n")) != n+2 {
		t.Errorf("%s", b)
	}
	return peak, string(b)
}

// blackPNG is a picture of that many pixels along a side, of which the file has some
// rows.
func blackPNG(side uint32, rows int) []byte {
	var b, data bytes.Buffer
	z := zlib.NewWriter(&data)
	row := make([]byte, 1+3*side)
	for range rows {
		z.Write(row)
	}
	z.Close()
	io.WriteString(&b, "\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		binary.Write(&b, binary.BigEndian, uint32(len(data)))
		body := append([]byte(kind), data...)
		b.Write(body)
		binary.Write(&b, binary.BigEndian, crc32.ChecksumIEEE(body))
	}
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, side), side)
	chunk("IHDR", append(header, 8, 2, 0, 0, 0))
	chunk("IDAT", data.Bytes())
	chunk("IEND", nil)
	return b.Bytes()
}

// A small file of a large picture does not make the program hold predictions of all its pixels beyond the memory.
func TestLargePictureMemory(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	program, pixels := executable(t, dir), infertest.Path("fixtures/dense/pixels")
	file := func(name string) string { return filepath.Join(pixels, name) }
	for _, tt := range []struct {
		w, h       int
		preprocess string
		how        []string
		want       string
	}{
		{3000, 3000, "input-size=16x24 crop-mode=squash", []string{"--at", "original"}, "predicting 3000×3000 pixels takes 344 MiB, want at most 100: --memory 344M allows it"},
		{70000, 90, "none", []string{"--tile", "90"}, "predicting 70000×90 pixels takes 241 MiB, want at most 100: --memory 241M allows it"},
	} {
		var large bytes.Buffer
		err := png.Encode(&large, image.NewPaletted(image.Rect(0, 0, tt.w, tt.h), color.Palette{color.Black}))
		if err == nil {
			err = os.WriteFile(at("large.png"), large.Bytes(), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"fit", "-q", "--force", "--template", file("model.onnx"), "--task", "classes", "--preprocess", tt.preprocess, "-o", at("p"), file("epoch-6.pt"), file("epoch-7.pt")},
			{"sample", "-q", "--force", "--method", "iterates", "-o", at("e"), at("p")},
		} {
			if printed, err := exec.Command(program, args...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %s", args, printed)
			}
		}
		c := exec.Command(program, append(append([]string{"score", "-q", "-j", "1", "-b", "1", "--memory", "100M", "-o", at("out.csv")}, tt.how...), at("e"), at("large.png"))...)
		printed, peak := measured(t, c)
		if !strings.Contains(printed, "large.png: "+tt.want) || c.ProcessState.ExitCode() != 65 || peak > 250<<20 {
			t.Errorf("%s: exit code %d, %d MB: %s", tt.how, c.ProcessState.ExitCode(), peak>>20, printed)
		}
	}
}
