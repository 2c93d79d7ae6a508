package file

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// No file is read and written, whichever comes first and whatever its names are.
func TestConflict(t *testing.T) {
	t.Cleanup(Forget)
	dir := t.TempDir()
	in, link := filepath.Join(dir, "in"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(in, nil, 0o666), os.Symlink("in", link)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(link)
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		name string
		does func() error
		fail bool
	}
	opened := func() error {
		f, _, err := Open(link, "a tar")
		if err == nil {
			f.Close()
		}
		return err
	}
	read := func() error { _, err := Read(link, 9); return err }
	input, listed := func() error { return Input(link) }, func() error { return Listed(info) }
	output := func() error { return Output(in) }
	missing := func() error { return errors.Join(Input(in+"?"), Output(in+"?")) }
	for _, steps := range [][]step{
		{{"input", input, false}, {"output", output, true}},
		{{"open", opened, false}, {"output", output, true}},
		{{"read", read, false}, {"output", output, true}},
		{{"output", output, false}, {"input", input, true}},
		{{"output", output, false}, {"open", opened, true}},
		{{"output", output, false}, {"read", read, true}},
		{{"output", output, false}, {"listed", listed, true}},
		{{"output", output, false}, {"written", func() error { Written(in); return nil }, false}, {"listed", listed, false}},
		{{"missing", missing, false}, {"again", output, false}, {"again", output, false}},
	} {
		Forget()
		for _, s := range steps {
			err := s.does()
			if c, ok := errors.AsType[*Conflict](err); ok != s.fail || ok && c.Path != in {
				t.Errorf("%s after %s: %v", s.name, steps[0].name, err)
			}
		}
	}
}
