package ort

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/weights"
)

// Install makes sure that the pinned runtime of the provider is in the user's cache folder, and returns its library. If
// it is missing or damaged, Install fetches the official package with pip, or with npm if pip fails. It extracts only
// the shared libraries and checks the SHA-256 of each. A library appears in the folder completely or not at all. If
// others can write to the folder, Install takes this right from them. For each step it calls progress with one line of
// text.
//
// An error is a *LibraryError that names every attempt, a *tempfile.TempError, or one as of [Provider.Open].
func (p Provider) Install(ctx context.Context, progress func(string)) (l Library, err error) {
	b, dir, err := p.cached()
	if err != nil {
		return l, err
	}
	return Library{Path: b.main(dir), By: setting.Line(p.setup()), cache: b}, b.install(ctx, dir, progress)
}

func (b bundle) install(ctx context.Context, dir string, progress func(string)) error {
	path := b.main(dir)
	err := b.check(dir)
	if errors.As(err, new(sharedError)) {
		restrict(filepath.Dir(dir))
		restrict(dir)
		err = b.check(dir)
	}
	if err == nil || errors.As(err, new(cacheError)) || errors.As(err, new(strangerError)) {
		return b.failure(dir, err) // nothing is to be done, or nothing that is fetched would help
	}
	if err := writable(dir); err != nil { // before the download
		return &LibraryError{Path: path, Reason: "cannot be written: " + reason(err), Err: cacheError{err}, Provider: b.provider}
	}
	work, err := tempfile.Folder()
	if err != nil {
		return err
	}
	defer tempfile.Remove(work)
	var failed []string
	var errs error
	for _, s := range b.sources {
		what := fmt.Sprintf("fetching %s with %s", b.title, s.manager)
		if s.manager == ownArchive {
			what = fmt.Sprintf("taking %s from %s", b.title, s.release)
		}
		progress(what)
		stop := watch(work, func(bytes int64, after time.Duration) {
			progress(fmt.Sprintf("%s: %.1f MB after %.0f s", what, float64(bytes)/1e6, after.Seconds()))
		})
		archive, err := s.fetch(ctx, work)
		stop()
		for k, lib := range s.libraries {
			if err == nil {
				err = extract(archive, lib, b.path(dir, k))
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			progress("installed " + path)
			return b.failure(dir, b.check(dir))
		}
		failed, errs = append(failed, fmt.Sprintf("%s: %v", s.manager, err)), errors.Join(errs, err)
		progress(failed[len(failed)-1])
	}
	return &LibraryError{Path: path, Reason: "could not be fetched: " + strings.Join(failed, "; "), Err: errs, Provider: b.provider}
}

// watch reports the size of all files in a folder every two seconds, until the returned function is called.
func watch(dir string, report func(bytes int64, after time.Duration)) (stop func()) {
	begun, ended, done := time.Now(), make(chan struct{}), make(chan struct{})
	go weights.Guarded(func() error {
		defer close(done)
		ticks := time.NewTicker(2 * time.Second)
		defer ticks.Stop()
		for {
			select {
			case <-ended:
				return nil
			case <-ticks.C:
			}
			bytes := int64(0)
			filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
				if err != nil {
					return nil // removed in the meantime
				}
				if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
					bytes += info.Size()
				}
				return nil
			})
			report(bytes, time.Since(begun))
		}
	})()
	return func() {
		close(ended)
		<-done
	}
}

// writable returns the error that prevents writing to dir or creating it.
func writable(dir string) error {
	err := unix.Access(dir, unix.W_OK|unix.X_OK)
	if errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		return writable(filepath.Dir(dir))
	}
	return err
}

// fetch downloads the package and returns the path of its archive. It installs nothing and runs no script of the
// package.
func (s source) fetch(ctx context.Context, work string) (archive string, err error) {
	if s.manager == ownArchive {
		return s.release, nil
	}
	if s.manager == "npm" {
		if _, err := exec.LookPath("npm"); err != nil {
			return "", errors.New("not found")
		}
		if err := command(ctx, work, "npm", "pack", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1", s.release); err != nil {
			return "", err
		}
		return one(filepath.Join(work, "*.tgz"))
	}
	args := []string{"download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
		"--implementation", "cp", "--python-version", pipPython, "--platform", s.tag,
		"--dest", work, s.release}
	err = errors.New("not found")
	for _, pip := range [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}} {
		if _, missing := exec.LookPath(pip[0]); missing != nil {
			continue
		}
		if err = command(ctx, work, pip[0], append(pip[1:], args...)...); err == nil {
			return one(filepath.Join(work, "*.whl"))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return "", err
}

// command runs a program. Its error contains the line of the output that explains the failure.
func command(ctx context.Context, dir, name string, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Env = append(os.Environ(), "TMPDIR="+dir) // where pip puts the bytes that come in
	cmd.WaitDelay = 5 * time.Second               // a grandchild may hold the pipe open
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, firstError(out.String()))
	}
	return nil
}

// firstError returns the first line of a package manager's output that is marked as an error, or else the last line.
func firstError(out string) string {
	last := "no output"
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if strings.Contains(strings.ToLower(line), "error") {
			return shorten(line)
		}
		if line != "" {
			last = line
		}
	}
	return shorten(last)
}

func one(pattern string) (string, error) {
	files, err := filepath.Glob(pattern)
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("%d files match %s, want 1", len(files), filepath.Base(pattern))
	}
	if err != nil {
		return "", err
	}
	return files[0], nil
}

// extract copies lib from a .tgz or .whl archive to path. It writes a temporary file next to path, checks its
// SHA-256, syncs and renames it.
func extract(archive string, lib library, path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := tempfile.File(dir)
	if err != nil {
		return err
	}
	defer tmp.Close()
	defer tempfile.Remove(tmp.Name())

	sum := sha256.New()
	if lib.size > 0 {
		// One byte more than expected is enough to detect another file.
		err = readMember(archive, lib.member, func(r io.Reader) error {
			_, err := io.Copy(io.MultiWriter(tmp, sum), io.LimitReader(r, lib.size+1))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != lib.sha256 {
		return fmt.Errorf("%s: %s has SHA-256 %s, want %s", filepath.Base(archive), lib.member, got, lib.sha256)
	}
	if err := errors.Join(tmp.Chmod(0o755), tmp.Sync()); err != nil {
		return err
	}
	if err := tempfile.Replace(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func readMember(archive, member string, read func(io.Reader) error) error {
	if strings.HasSuffix(archive, ".whl") {
		z, err := zip.OpenReader(archive)
		if err != nil {
			return err
		}
		defer z.Close()
		f, err := z.Open(member)
		if err != nil {
			return err
		}
		defer f.Close()
		return read(f)
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for t := tar.NewReader(gz); ; {
		h, err := t.Next()
		if err == io.EOF {
			return fmt.Errorf("no %s in it", member)
		}
		if err != nil {
			return err
		}
		if h.Name == member && h.Typeflag == tar.TypeReg {
			return read(t)
		}
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
