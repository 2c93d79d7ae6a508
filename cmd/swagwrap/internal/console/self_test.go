package console

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A line for a shell starts the program that wrote it, wherever it is.
func TestSelf(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(at("installed"), 0o777), os.Symlink(self, at("installed/swagwrap")), os.Mkdir(at("other"), 0o777), os.WriteFile(at("other/swagwrap"), []byte("#!/bin/sh\n"), 0o777),
		os.Mkdir(at("bin"), 0o777), os.Symlink(self, at("bin/swagwrap")), os.Symlink("other", at("venv"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, tc := range []struct {
		path, program, python string
		want                  []string
	}{
		{at("installed"), "swagwrap", "", []string{"swagwrap"}},
		{at("installed"), "bin/swagwrap", "", []string{"swagwrap"}},
		{at("other"), "bin/swagwrap", "", []string{at("bin/swagwrap")}}, // another program has the name
		{at("none"), "./bin/swagwrap", "", []string{at("bin/swagwrap")}},
		{"bin", "swagwrap", "", []string{self}}, // not found from other folders
		{at("none"), "swagwrap", "", []string{self}},
		{at("venv"), "swagwrap", at("venv/python"), []string{"swagwrap"}},
		{at("other"), "swagwrap", at("venv/python"), []string{at("venv/python"), "-m", "swagwrap"}},
		{at("none"), "swagwrap", at("venv/python"), []string{at("venv/python"), "-m", "swagwrap"}},
	} {
		t.Setenv("PATH", tc.path)
		t.Setenv("SWAGWRAP_PYTHON", tc.python)
		if got := (&Env{Program: tc.program}).Self(); !slices.Equal(got, tc.want) {
			t.Errorf("PATH=%s, started as %s by %s: %q, want %q", tc.path, tc.program, tc.python, got, tc.want)
		}
	}
	got := (&Env{Program: "./my bin/swagwrap"}).typed([]string{"swagwrap fit -o p", "cd swagwrap"})
	if diff := cmp.Diff([]string{"'./my bin/swagwrap' fit -o p", "cd swagwrap"}, got); diff != "" {
		t.Error(diff)
	}
}
