package programs

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/weights/statefile"
)

// extract returns the folder that a program of testdata/make.py left.
func extract(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	z, err := zip.OpenReader("testdata/" + name + ".zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		path := filepath.Join(dir, f.Name)
		r, err := f.Open()
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o777)
		}
		var b []byte
		if err == nil {
			b, err = io.ReadAll(r)
		}
		if err == nil {
			err = os.WriteFile(path, b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The folders that programs leave: the checkpoints in their order, where the weights are that SGD moved, where averages lie, and what is read
// beside them.
func TestRows(t *testing.T) {
	t.Parallel()
	for name := range map[string]bool{"accelerate":true, "diffusers":true,"diffusers_scripts":true,"ema_pytorch":true,"ema_pytorch_alone":true,"fastai":true,"ignite":true,"imagenet":true,"lightning":true,"mmengine":true,"monai":true,"skorch":true,"speechbrain":true,"timm":true,"torchvision":true} {
		dir := extract(t, name)
		f, err := List(dir, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		c, err := f.Choose(nil)
		f.Close()
		if err != nil {
			t.Log(name, err)
			if e, ok := err.(*SeveralError); ok { for _, s := range e.Sets { t.Log("   ", s) } }
			continue
		}
		var short []string
		var files []*statefile.File
		for _, p := range c.Paths {
			short = append(short, f.Short(p))
			file, err := statefile.Open(p)
			if err != nil {
				t.Fatal(name, err)
			}
			files = append(files, file)
		}
		keys, iterate := Keys(files)
		r := Near(c.Paths, dir, "", files[len(files)-1])
		n := ""
		if r.Program != nil {
			n = r.Program.Name
		}
		words := ""
		if p := r.Preprocess(); p != nil {
			words = p.Spec
		}
		cl, _ := r.Classes()
		t.Log(name, n, short, "over", c.Over, iterate, Describe(keys), words, cl, strings.Split(r.Measured(), "If the")[0], files[0].StateDicts())
		_ = slices.Contains(short, "")
	}
}
