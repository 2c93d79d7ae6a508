package ort

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/setting"
	"golang.org/x/sys/unix"
)

// A verified has the open libraries of a bundle. They had the published bytes, and only root and this user can change
// them.
type verified struct {
	path   string     // of the library to load
	folder *os.File   // of all libraries
	files  []*os.File // the libraries, in the bundle's order
	states []state    // of the files, before they were read
}

// A state of a file changes with each write to it, and if another file takes its name. Programs can set the first time,
// but not the second one.
type state struct {
	size              int64
	modified, changed unix.Timespec
}

func stateOf(f *os.File) (state, error) {
	var s unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &s)
	return state{s.Size, s.Mtim, s.Ctim}, err
}

// A damagedError reports a library of the cache that is not the published one.
type damagedError string

func (e damagedError) Error() string { return "damaged: " + string(e) }

// A strangerError reports a file next to the libraries that Install did not put there. The linker may load it.
type strangerError struct{ path string }

func (e strangerError) Error() string {
	return fmt.Sprintf("%s was not put there by %s, and the libraries may load it", e.path, setting.Line(setting.Setup.String()))
}

// verify opens the libraries of a bundle in a folder, and reads each of them to its end. It does so at every start. A
// record of an earlier check would save time. But times of files can be set, and who can exchange a library can write
// such a record, too. The CPU's library has 29 MB. Its SHA-256 takes 0.03 s of CPU time, and 0.1 s on a processor without
// SHA instructions. With it, `score` of two pictures took 0.136 s of CPU time instead of 0.104 s (Xeon with SHA
// instructions, medians of 40 alternating runs).
func (b bundle) verify(dir string) (v *verified, err error) {
	v = &verified{path: b.main(dir)}
	defer func() {
		if err != nil {
			v.close()
		}
	}()
	above, err := openFolder(filepath.Dir(dir)) // who can write to it can exchange the other
	if err != nil {
		return v, err
	}
	above.Close()
	if v.folder, err = openFolder(dir); err != nil {
		return v, err
	}
	for k := range b.sources[0].libraries {
		f, err := openBelow(v.folder, b.path(dir, k))
		if err != nil {
			return v, err
		}
		v.files = append(v.files, f)
		before, err := stateOf(f)
		if err != nil {
			return v, err
		}
		v.states = append(v.states, before)
		if err := checkSum(f, b.sums(k)); err != nil {
			return v, err
		}
	}
	return v, v.strangers()
}

// check returns the error of verify.
func (b bundle) check(dir string) error {
	v, err := b.verify(dir)
	if err == nil {
		v.close()
	}
	return err
}

// sums returns the SHA-256 sums that library k may have: one of each source.
func (b bundle) sums(k int) (sums []string) {
	for _, s := range slices.Backward(b.sources) {
		sums = append(sums, s.libraries[k].sha256)
	}
	return sums
}

// openFolder opens a folder that only root and this user can write to.
func openFolder(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), dir)
	if err := private(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openBelow opens the regular file at path, which is in the folder. It follows no link, because others may be able to
// write to the folder behind the link.
func openBelow(folder *os.File, path string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC // a pipe keeps nobody waiting
	fd, err := unix.Openat(int(folder.Fd()), filepath.Base(path), flags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, damagedError(filepath.Base(path) + " is a link")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damagedError(filepath.Base(path) + " is missing")
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), path)
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = damagedError(filepath.Base(path) + " is not a regular file")
	default:
		err = private(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// checkSum reads a library and returns a [damagedError] unless it has one of the SHA-256 sums.
func checkSum(f *os.File, sums []string) error {
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); !slices.Contains(sums, sum) {
		return damagedError(fmt.Sprintf("%s has SHA-256 %s, want %s", filepath.Base(f.Name()), sum,
			strings.Join(slices.Compact(sums), " or ")))
	}
	return nil
}

// strangers returns a [strangerError] if the folder has other files than the libraries. These look there for more: CUDA's
// for libstdc++.so.6, WebGPU's for libvulkan.so.1, OpenVINO's for plugins.xml. Hidden files are ignored: no library has
// such a name, and a killed Install leaves some.
func (v *verified) strangers() error {
	names, err := v.folder.Readdirnames(-1)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		known := slices.ContainsFunc(v.files, func(f *os.File) bool { return filepath.Base(f.Name()) == name })
		if !known && !strings.HasPrefix(name, ".") {
			return strangerError{filepath.Join(v.folder.Name(), name)}
		}
	}
	return nil
}

// hold returns a name for the linker, which is valid until the process ends. By this name the linker opens the verified
// file, even if another one has taken its path. If there are several libraries, the main one looks for the others next to
// itself. So its name is one in their open folder: a file that this user exchanges there after verify is loaded. Without
// Linux's /proc, hold returns the path. It fails if a library changed since verify opened it.
func (v *verified) hold() (string, error) {
	for k, f := range v.files {
		if now, err := stateOf(f); err != nil || now != v.states[k] {
			v.close()
			return "", damagedError(filepath.Base(f.Name()) + " changed while it was read")
		}
	}
	held, below := v.folder, "/"+filepath.Base(v.path)
	if len(v.files) == 1 {
		held, below = v.files[0], ""
	}
	name := "/proc/self/fd/" + strconv.Itoa(int(held.Fd()))
	there, err := os.Stat(name)
	here, err2 := held.Stat()
	if err != nil || err2 != nil || !os.SameFile(there, here) {
		v.close()
		return v.path, nil
	}
	for _, f := range append(v.files, v.folder) {
		if f != held {
			f.Close()
		}
	}
	kept = append(kept, held)
	return name + below, nil
}

// kept has files that are never closed. The linker knows a library by its name, so the number in the name must not be
// used for another one.
var kept []*os.File // guarded by loaded

func (v *verified) close() {
	for _, f := range append(v.files, v.folder) {
		f.Close() // nil is fine
	}
}
