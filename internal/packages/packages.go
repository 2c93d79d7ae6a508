// Package packages fetches published packages with pip and npm, and takes files out of their archives.
package packages

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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// Managers are the package managers of this machine.
type Managers struct{}

// pipPython is the Python version whose wheel is fetched, whichever version runs pip. On macOS the library differs from wheel
// to wheel.
const pipPython = "3.12"

// Fetch downloads a package of pip or npm into a folder, and returns the path of its archive. It installs nothing and runs no
// script of the package. platform is pip's --platform.
func (Managers) Fetch(ctx context.Context, manager, release, platform, folder string) (archive string, err error) {
	if manager == "npm" {
		if _, err := exec.LookPath("npm"); err != nil {
			return "", errors.New("not found")
		}
		if err := command(ctx, folder, "npm", "pack", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1", release); err != nil {
			return "", err
		}
		return tempfile.Only(filepath.Join(folder, "*.tgz"))
	}
	args := []string{"download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
		"--implementation", "cp", "--python-version", pipPython, "--platform", platform,
		"--dest", folder, release}
	err = errors.New("not found")
	for _, pip := range [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}} {
		if _, missing := exec.LookPath(pip[0]); missing != nil {
			continue
		}
		if err = command(ctx, folder, pip[0], append(pip[1:], args...)...); err == nil {
			return tempfile.Only(filepath.Join(folder, "*.whl"))
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
			return short(line)
		}
		if line != "" {
			last = line
		}
	}
	return short(last)
}

// short is a line of at most 400 bytes.
func short(line string) string {
	const most = 400
	if line = strings.Join(strings.Fields(line), " "); len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + " ..."
	}
	return line
}

// Extract copies a member of so many bytes from a .tgz or .whl archive to path. It writes a temporary file next to path,
// checks its SHA-256, syncs and renames it. The archive may lack a member of 0 bytes.
func (Managers) Extract(archive, member string, size int64, sum256, path string) error {
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
	if size > 0 {
		// One byte more than expected is enough to detect another file.
		err = readMember(archive, member, func(r io.Reader) error {
			_, err := io.Copy(io.MultiWriter(tmp, sum), io.LimitReader(r, size+1))
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != sum256 {
		return fmt.Errorf("%s: %s has SHA-256 %s, want %s", filepath.Base(archive), member, got, sum256)
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
