package ort

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// A damagedError reports a library of the cache that is not the published one.
type damagedError string

func (e damagedError) Error() string { return "damaged: " + string(e) }

// verifiedName is the file next to cached libraries that remembers which of them had the right SHA-256.
const verifiedName = "verified.json"

// An identity tells whether a file is the one that was verified. A program that writes to a file changes its times.
type identity struct {
	SHA256   string `json:"sha256"`
	Size     int64  `json:"size"`
	Modified int64  `json:"modified"` // in nanoseconds since 1970
	Changed  int64  `json:"changed"`  // the same, for contents, name and permissions
	Inode    uint64 `json:"inode"`
}

// verify returns a [damagedError] unless the file at path has one of the given SHA-256 sums. A start must not wait for
// 30 MB to be read, so verify remembers a file that was right, and reads it again only after it changed. With fresh it
// always reads the file. Errors do not name the path.
func verify(path string, fresh bool, sums ...string) error {
	f, _, err := file.Regular(path)
	if errors.Is(err, file.ErrNotRegular) {
		return damagedError(file.ErrNotRegular.Error())
	}
	if err != nil {
		return err
	}
	defer f.Close()
	before, err := identify(f)
	if err != nil {
		return err
	}
	note, name := filepath.Join(filepath.Dir(path), verifiedName), filepath.Base(path)
	known := remembered(note)
	if was, ok := known[name]; ok && !fresh && slices.Contains(sums, was.SHA256) {
		if before.SHA256 = was.SHA256; before == was {
			return nil
		}
	}
	sum, err := readerSHA256(f)
	if err != nil {
		return err
	}
	if !slices.Contains(sums, sum) {
		if _, ok := known[name]; ok {
			delete(known, name)
			remember(note, known)
		}
		return damagedError(fmt.Sprintf("%s has SHA-256 %s, want %s", name, sum, strings.Join(slices.Compact(sums), " or ")))
	}
	after, err := identify(f)
	before.SHA256, after.SHA256 = sum, sum
	// A file that was written to just now may be written to again within the same tick of the clock.
	if age := time.Since(time.Unix(0, after.Changed)); err == nil && before == after && age > time.Second && known[name] != after {
		known[name] = after
		remember(note, known)
	}
	return nil
}

func identify(f *os.File) (identity, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return identity{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return identity{Size: s.Size, Modified: s.Mtim.Nano(), Changed: s.Ctim.Nano(), Inode: s.Ino}, nil
}

// remembered returns what a note says. A note that cannot be read costs only time.
func remembered(note string) map[string]identity {
	known := make(map[string]identity)
	if b, err := file.Content(note, 1<<20); err != nil || json.Unmarshal(b, &known) != nil || known == nil {
		return make(map[string]identity)
	}
	return known
}

// remember writes a note. Where the folder cannot be written, each start reads the libraries.
func remember(note string, known map[string]identity) {
	b, err := json.Marshal(known)
	if err != nil {
		return
	}
	f, err := tempfile.File(filepath.Dir(note))
	if err != nil {
		return
	}
	defer f.Close()
	defer tempfile.Remove(f.Name())
	if _, err := f.Write(b); err == nil {
		tempfile.Replace(f.Name(), note)
	}
}
