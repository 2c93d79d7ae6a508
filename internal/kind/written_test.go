package kind

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/internal/numpy"
)

// Only files that show who wrote them may be replaced.
func TestWritten(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	archive := func(name string, own bool) string {
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z := numpy.NewArchive(f)
		if !own {
			z.SetComment("")
		}
		w, err := z.Create("x.npy")
		if err == nil {
			_, err = w.Write(numpy.Header("<f4", 0))
		}
		if err == nil {
			err = z.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	npy := string(numpy.Header("<f4", 0))
	write("maps/"+Marker, "")
	for _, tc := range []struct {
		path string
		want bool
	}{
		{write("empty", ""), true},
		{write("text.csv", "precious"), false},
		{write("list.csv", "path,label\na.png,1\n"), false},
		{write("rows.csv", "path,prediction,confidence\n"), true},
		{write("rows.jsonl", `{"path":"a","prediction":"b"}`), true},
		{write("other.jsonl", `{"path":"a","text":"b"}`), false},
		{write("page.html", "<!doctype html>\n<html><head><meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"swagwrap\">"), true},
		{write("theirs.html", "<!doctype html>\n<html><p>swagwrap"), false},
		{write("x.meta.json", "{\n  \"program\": \"swagwrap v1\""), true},
		{write("y.meta.json", "{\n  \"program\": \"other\"}"), false},
		{write("c.json", `{"kind": "swagwrap.calibration"}`), true},
		{write("d.json", `{"kind": "other"}`), false},
		{write("p.safetensors", "\x42\x00\x00\x00\x00\x00\x00\x00"+`{"__metadata__":{"kind":"swagwrap.posterior"}}                    `), true},
		{write("model.safetensors", "\x02\x00\x00\x00\x00\x00\x00\x00{}"), false},
		{write("parts.csv.part-0-of-2", "swagwrap part 4\n"), true},
		{write("a.npy", npy), false},
		{archive("own.npz", true), true},
		{archive("their.npz", false), false},
		{write("maps/a.png", "anything"), true},
		{write("maps/sub/a.png", "anything"), false},
		{filepath.Join(dir, "gone"), false},
		{dir, false},
	} {
		if got := Written(tc.path); got != tc.want {
			t.Errorf("%s: %v, want %v (%s)", tc.path, got, tc.want, Detect(tc.path))
		}
	}
	if !Array(filepath.Join(dir, "a.npy")) || Array(filepath.Join(dir, "text.csv")) {
		t.Error("an array")
	}
}
