package reference

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
)

// A network with rounded weights is one that runs, whatever its constants are: without it, the tolerance would be the least one.
func TestRoundedNetworksAreReadable(t *testing.T) {
	const root = "../../fixtures/exporters"
	count := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "ckpt-1.onnx") {
			return err
		}
		m, err := onnxio.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		r, err := rounded(m, bitsProbe)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		filled, err := prepared(r, false)
		if err != nil {
			t.Logf("%s: %v", path, err) // such as batch norm inside of functions
			return nil
		}
		if _, err := filled.Template.Signature(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		count++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 50 {
		t.Errorf("%d networks, want more", count)
	}
}
