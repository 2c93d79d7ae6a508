package ort

import (
	"errors"
	"github.com/swagwrap/swagwrap/internal/packages"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The files for browsers come from an archive that the user names, if they are the published ones. No other bytes are given out.
func TestWeb(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("PATH", t.TempDir()) // without npm
	p := Provider{Name: Web}
	fails := func(err error, want string) {
		t.Helper()
		e, ok := errors.AsType[*LibraryError](err)
		if !ok || !strings.Contains(e.Error(), want) {
			t.Fatalf("%v, want %q", err, want)
		}
		if hint := e.Hint(); !strings.Contains(hint, WebEnv) || !strings.Contains(hint, "npm pack "+webRelease) {
			t.Errorf("hint %q", hint)
		}
	}
	_, err := WebFiles()
	fails(err, "not installed")
	_, err = p.Install(t.Context(), packages.Managers{}, func(string) {})
	fails(err, "npm: not found")

	archive := filepath.Join(t.TempDir(), "other.tgz")
	if err := os.WriteFile(archive, tgz(t, "package/dist/"+WebAssembly, "something else"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv(WebEnv, archive)
	_, err = p.Install(t.Context(), packages.Managers{}, func(string) {})
	fails(err, "has SHA-256")
	_, dir, err := p.cached()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{WebAssembly, WebModule} {
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte("planted"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = WebFiles()
	fails(err, "is not the published file")
	if p.Computes() || !(Provider{}).Computes() {
		t.Error("a browser's runtime computes nothing here")
	}
}
