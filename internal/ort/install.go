package ort

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/weights"
)

// A Manager fetches published packages, and takes files out of their archives: see package packages.
type Manager interface {
	Fetch(ctx context.Context, manager, release, platform, folder string) (archive string, err error)
	Extract(archive, member string, size int64, sha256, path string) error
}

// Install makes sure that the pinned runtime of the provider is in the user's cache folder, and returns its library. If
// it is missing or damaged, Install fetches the official package with pip, or with npm if pip fails. It extracts only
// the shared libraries and checks the SHA-256 of each. A library appears in the folder completely or not at all. If
// others can write to the folder, Install takes this right from them. For each step it calls progress with one line of
// text.
//
// An error is a *LibraryError that names every attempt, a *tempfile.TempError, or one as of [Provider.Open].
func (p Provider) Install(ctx context.Context, m Manager, progress func(string)) (l Library, err error) {
	b, dir, err := p.cached()
	if err != nil {
		return l, err
	}
	return Library{Path: b.main(dir), By: setting.Line(p.setup()), cache: b}, b.install(ctx, dir, m, progress)
}

func (b bundle) install(ctx context.Context, dir string, m Manager, progress func(string)) error {
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
		what := fmt.Sprintf("fetching %s with %s (%s)", b.title, s.manager, s.release)
		if s.manager == ownArchive {
			what = fmt.Sprintf("taking %s from %s", b.title, s.release)
		}
		progress(what)
		stop := watch(work, func(bytes int64, after time.Duration) {
			progress(fmt.Sprintf("%s: %.1f MB after %.0f s", what, float64(bytes)/1e6, after.Seconds()))
		})
		archive, err := s.release, error(nil)
		if s.manager != ownArchive {
			archive, err = m.Fetch(ctx, s.manager, s.release, s.tag, work)
		}
		stop()
		for k, lib := range s.libraries {
			if err == nil {
				err = m.Extract(archive, lib.member, lib.size, lib.sha256, b.path(dir, k))
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
