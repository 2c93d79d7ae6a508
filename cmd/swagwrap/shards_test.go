package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// TestWorkersAndShards: 1 thread and 8 give the same bytes, and so do images that are scored in 64 parts, whose rows are
// put one behind the other. The work has no shuffle.
func TestWorkersAndShards(t *testing.T) {
	t.Parallel()
	const shards = 64
	each := reliability.Figure(4, 64)
	dir := t.TempDir()
	pictures, e := filepath.Join(dir, "pictures"), pictureEnsemble(t, dir, 3)
	writePictures(t, pictures, shards*each)
	score := func(name string, args ...string) [][]byte {
		path := filepath.Join(dir, name)
		args = slices.Concat([]string{"score", "-q", "--probs", "--keep-members", "-o", path}, args)
		if code, printed := program(t, args...); code != 0 {
			t.Fatalf("%q: exit code %d: %s", args, code, printed)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.SplitAfter(b, []byte("\n"))
	}
	want := score("one.csv", "-j", "1", e, pictures)
	for _, threads := range []string{"2", "8"} {
		if got := score(threads+".csv", "-j", threads, e, pictures); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("%s threads: other bytes than 1", threads)
		}
	}
	got := want[:1:1] // the header
	for i := range shards {
		args := []string{"-j", fmt.Sprint(1 + i%3), e}
		for k := range each {
			args = append(args, photograph(pictures, i*each+k))
		}
		rows := score(fmt.Sprintf("part-%02d.csv", i), args...)
		if !bytes.Equal(rows[0], want[0]) || len(rows) != each+2 {
			t.Fatalf("part %d: %d lines, header %s", i, len(rows), rows[0])
		}
		got = append(got, rows[1:each+1]...)
	}
	if got = append(got, nil); !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%d parts: other bytes than one run", shards)
	}
}
