//go:build large

package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// writeTars writes pictures of 4×4 pixels into tars.
func writeTars(t *testing.T, dir string, tars, each int) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var pictures [][]byte
	for k := range 251 {
		img := image.NewGray(image.Rect(0, 0, 4, 4))
		for p := range 16 {
			img.SetGray(p%4, p/4, color.Gray{Y: uint8(k*(p+1) + p)})
		}
		var b bytes.Buffer
		must(png.Encode(&b, img))
		pictures = append(pictures, b.Bytes())
	}
	for k := range tars {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%03d.tar", k)))
		must(err)
		buffered := bufio.NewWriterSize(f, 1<<20)
		w := tar.NewWriter(buffered)
		for i := range each {
			b := pictures[(k*each+i)%len(pictures)]
			must(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("%07d.png", k*each+i), Size: int64(len(b)), Mode: 0o644, Format: tar.FormatUSTAR}))
			_, err = w.Write(b)
			must(err)
		}
		must(w.Close())
		must(buffered.Flush())
		must(f.Close())
	}
}

// A million pictures in a hundred tars are listed once and scored in a hundred parts, each
// with its own tars alone in view; merged they are the bytes of one run over the tars.
func TestMillion(t *testing.T) {
	const tars, each = 100, 10_000
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	e, program := pictureEnsemble(t, dir, 2), executable(t, dir)
	writeTars(t, dir, tars, each)
	do := func(what string, args ...string) int64 {
		t.Helper()
		c := exec.Command(program, append([]string{args[0], "-q"}, args[1:]...)...)
		start := time.Now()
		printed, peak := measured(t, c)
		if !c.ProcessState.Success() {
			t.Fatalf("%s: %v: %s", what, c.ProcessState, printed)
		}
		if what != "" {
			t.Logf("%s: %.1f s, %.1f s CPU, %d MB", what, time.Since(start).Seconds(), (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds(), peak>>20)
		}
		return peak
	}
	do("one run over the tars", "score", "-b", "100", "-o", at("whole.csv"), e, at("{000..099}.tar"))
	do("list", "list", "-o", at("files.parquet"), at("{000..099}.tar"))
	start := time.Now()
	var most int64
	for i := range tars {
		what := ""
		if i == 50 {
			what = "part 50, its tar alone in view"
			for k := range tars {
				if k != i {
					if err := os.Rename(at(fmt.Sprintf("%03d.tar", k)), at(fmt.Sprintf("%03d.away", k))); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		most = max(most, do(what, "score", "-b", "100", "--part", fmt.Sprintf("%d/%d", i, tars), "-o", at("out.csv"), e, at("files.parquet")))
		if i == 50 {
			for k := range tars {
				if k != i {
					if err := os.Rename(at(fmt.Sprintf("%03d.away", k)), at(fmt.Sprintf("%03d.tar", k))); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	t.Logf("%d parts, one after the other: %.1f s, %d MB at most", tars, time.Since(start).Seconds(), most>>20)
	if most > 150<<20 {
		t.Errorf("a part took %d MB: it holds more than is its own", most>>20)
	}
	if peak := do("merge of 1,000,000 rows", "merge", "-o", at("out.csv")); peak > 150<<20 {
		t.Errorf("merge took %d MB", peak>>20)
	}
	got, err := os.ReadFile(at("out.csv"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(at("whole.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("merged parts are not the bytes of one run")
	}
	do("merge into Parquet", append([]string{"merge", "-o", at("out.parquet")}, parts(t, at("out.csv"))...)...)
}

// parts are the parts of an output.
func parts(t *testing.T, output string) []string {
	t.Helper()
	list, err := filepath.Glob(output + ".part-*")
	if err != nil || list == nil {
		t.Fatalf("no parts of %s: %v", output, err)
	}
	return list
}
