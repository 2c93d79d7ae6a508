package checkpoints

import (
	"os"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
)

// mapped returns the number of kilobytes of a file that this process has in memory.
func mapped(t *testing.T, path string) (kilobytes string) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, of, found := strings.Cut(string(b), path)
	if !found {
		t.Fatalf("%s is not mapped", path)
	}
	_, rss, _ := strings.Cut(of, "\nRss:")
	line, _, _ := strings.Cut(rss, "\n")
	return strings.TrimSpace(line)
}

// Small reads all over large files map them as a whole, a huge page around each. Their memory is given back too.
func TestReadGivesBack(t *testing.T) {
	paths := []string{"../../fixtures/mnist/checkpoints/epoch-01.onnx", "../../fixtures/mnist/checkpoints/epoch-02.onnx"}
	var models []*onnxio.Model
	for _, path := range paths {
		m, err := onnxio.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		models = append(models, m)
	}
	touch := func(m *onnxio.Model) {
		sum := byte(0)
		for _, file := range m.Files() {
			for i := 0; i < len(file); i += 4096 {
				sum += file[i]
			}
		}
	}
	name := func(k int) string { return paths[k][strings.LastIndex(paths[k], "fixtures"):] }
	touch(models[0])
	touch(models[1])
	if mapped(t, name(0)) == "0 kB" || mapped(t, name(1)) == "0 kB" {
		t.Fatal("reading maps nothing: what is tested?")
	}
	var s Set
	for range 64<<20/around - 1 {
		s.read(16, models[0])
	}
	if mapped(t, name(0)) == "0 kB" {
		t.Error("given back after few reads")
	}
	s.read(16, models[0])
	if got := mapped(t, name(0)); got != "0 kB" {
		t.Errorf("%s are left of the file that was read", got)
	}
	if mapped(t, name(1)) == "0 kB" {
		t.Error("the other file is gone, too")
	}
}
