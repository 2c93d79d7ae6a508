package console

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/swagwrap/swagwrap/internal/file"
)

// contents are the files in a folder, with what is in them.
func contents(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e.Name()+"="+string(b))
	}
	return all
}

// Files of one command appear together or not at all, whatever fails, and what they were to replace stays.
func TestTogether(t *testing.T) {
	t.Cleanup(file.Forget)
	failed := errors.New("failed")
	for what, tc := range map[string]struct {
		force  bool
		breaks func(dir, last string) // what goes wrong after all is written
		print  error
		check  error
		want   []string // of files a, b and c, where b is there before
		code   int
	}{
		"nothing":                     {force: true, want: []string{"a=new", "b=new", "c=new"}},
		"the last has lost its place": {force: true, breaks: func(dir, _ string) { os.Mkdir(filepath.Join(dir, "c"), 0o777) }, want: []string{"b=old"}, code: exitUsage},
		"the last is gone":            {force: true, breaks: func(_, last string) { os.Remove(last) }, want: []string{"b=old"}, code: exitTemporary},
		"the last has appeared":       {breaks: func(dir, _ string) { os.WriteFile(filepath.Join(dir, "c"), []byte("theirs"), 0o666) }, want: []string{"b=old", "c=theirs"}, code: exitTemporary},
		"standard output is full":     {force: true, print: BadOutput(syscall.ENOSPC), want: []string{"b=old"}, code: exitTemporary},
		"its reader has gone":         {force: true, print: BadOutput(syscall.EPIPE), want: []string{"a=new", "b=new", "c=new"}, code: 141},
		"the check fails":             {force: true, check: BadInput(failed), want: []string{"b=old"}, code: exitData},
	} {
		file.Forget()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "b"), []byte("old"), 0o666); err != nil {
			t.Fatal(err)
		}
		var files []*Output
		for _, name := range []string{"a", "b", "c"} {
			if name == "b" && !tc.force {
				continue
			}
			out, err := CreateCompanion(filepath.Join(dir, name), tc.force, func(string) bool { return true })
			if err == nil {
				_, err = out.Write([]byte("new"))
			}
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, out, nil)
		}
		if tc.breaks != nil {
			tc.breaks(dir, files[len(files)-2].Name())
		}
		err := Together{Print: func() error { return tc.print }, Check: func() error { return tc.check }}.Commit(files...)
		if code := ExitCode(t.Context(), err); code != tc.code {
			t.Errorf("%s: %v, exit code %d, want %d", what, err, code, tc.code)
		}
		if info, err := os.Stat(filepath.Join(dir, "c")); err == nil && info.IsDir() {
			os.Remove(filepath.Join(dir, "c"))
		}
		if got := contents(t, dir); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", what, got, tc.want)
		}
	}
}

// A failed write to standard output is not forgotten by a command that ends well, or nearly so.
func TestStdoutOutcome(t *testing.T) {
	full := &Stdout{err: BadOutput(syscall.ENOSPC)}
	other := errors.New("other")
	for _, tc := range []struct {
		out  *Stdout
		err  error
		code int
	}{
		{&Stdout{}, nil, 0}, {&Stdout{}, other, 1}, {&Stdout{}, Incomplete("some"), 3},
		{full, nil, 75}, {full, Incomplete("some"), 75}, {full, other, 1}, {full, Usagef("", "wrong"), 64},
	} {
		if got := ExitCode(t.Context(), tc.out.Outcome(tc.err)); got != tc.code {
			t.Errorf("%v after %v: exit code %d, want %d", tc.out.err, tc.err, got, tc.code)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	out := NewStdout(w)
	for range 2 {
		if _, err := out.Write([]byte("x")); !gone(err) || !strings.HasPrefix(err.Error(), "standard output: ") {
			t.Errorf("%v", err)
		}
	}
}
