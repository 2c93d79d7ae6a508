package ort

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestOpenAgain(t *testing.T) {
	again, err := Provider{}.Open(Library{Path: rt.Path()})
	if err != nil || again != rt {
		t.Fatalf("got %v, %v", again, err)
	}
	if !atLeast(rt.Version(), MinVersion) {
		t.Errorf("version %s", rt.Version())
	}
}

// Nothing that a user may name as the library takes the process down.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	real, err := os.ReadFile(rt.Path())
	if err != nil {
		t.Fatal(err)
	}
	const api = `
		typedef struct { const void *(*get)(unsigned); const char *(*version)(void); } base;
		static const void *get(unsigned v) { return 0; }
		static const char *version(void) { return VERSION; }
		static const base b = { get, version };
		const base *OrtGetApiBase(void) { return BASE; }`
	old := compile(t, dir, "old", api, "-DBASE=&b", `-DVERSION="1.20.0"`)
	foreign, err := os.ReadFile(old)
	if err != nil {
		t.Fatal(err)
	}
	setMachine(foreign)

	tests := []struct{ name, path, want string }{
		{"missing", filepath.Join(dir, "none.so"), "no such file"},
		{"folder", dir, "not a regular file"},
		{"empty", write("empty.so", nil), "not a whole shared library"},
		{"text", write("text.so", []byte("not a library\n")), "not a whole shared library"},
		{"truncated", write("cut.so", real[:len(real)/2]), "shared library"},
		{"no symbol", compile(t, dir, "other", "int x;"), "no symbol OrtGetApiBase"},
		{"architecture", write("foreign.so", foreign), "built for"},
		{"old", old, `version "1.20.0" is too old, want 1.28.3 or later`},
		{"no base", compile(t, dir, "nobase", api, "-DBASE=0", `-DVERSION="1.30.0"`), `version "" is too old`},
		{"no version", compile(t, dir, "nover", api, "-DBASE=&b", "-DVERSION=0"), `version "" is too old`},
		{"second", compile(t, dir, "second", api, "-DBASE=&b", `-DVERSION="1.99.0"`), "has loaded another one"},
	}
	for _, tt := range tests {
		_, err := Provider{}.Open(Library{Path: tt.path})
		lib, ok := errors.AsType[*LibraryError](err)
		if !ok || lib.Path != tt.path || !strings.Contains(lib.Reason, tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
			continue
		}
		if h := lib.Hint(); !strings.Contains(h, "the set-up") || !strings.Contains(h, "Runtime") || !strings.Contains(h, LibraryEnv) {
			t.Errorf("%s: hint %q", tt.name, h)
		}
	}
}

// A library that claims a good version but lacks the API that the binding was
// made for. It needs a process that has no ONNX Runtime loaded.
func TestOpenWithoutAPI(t *testing.T) {
	lib := compile(t, t.TempDir(), "noapi", `
		static const void *get(unsigned v) { return 0; }
		static const char *version(void) { return "1.99.0"; }
		static const struct { const void *g, *v; } b = { get, version };
		const void *OrtGetApiBase(void) { return &b; }`)
	fresh := exec.Command(os.Args[0], "-test.run=^$")
	fresh.Env = append(os.Environ(), LibraryEnv+"="+lib)
	out, err := fresh.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), "version 1.99.0: ") {
		t.Errorf("%v: %s", err, out)
	}
}

func compile(t *testing.T, dir, name, source string, flags ...string) string {
	t.Helper()
	lib := filepath.Join(dir, name+".so")
	env, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	args := append(strings.Fields(string(env)), flags...)
	cc := exec.Command(args[0], append(args[1:], "-shared", "-fPIC", "-o", lib, "-x", "c", "-")...)
	cc.Stdin = strings.NewReader(source)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v: %s", err, out)
	}
	return lib
}

// setMachine makes a library claim to be for a machine that is not this one.
func setMachine(lib []byte) {
	if runtime.GOOS == "darwin" {
		binary.LittleEndian.PutUint32(lib[4:], 12) // CPU_TYPE_ARM, 32 bit
		return
	}
	binary.LittleEndian.PutUint16(lib[18:], 8) // EM_MIPS
}

func TestAtLeast(t *testing.T) {
	for version, want := range map[string]bool{
		"1.28.3": true, "1.28.10": true, "1.30.0": true, "2.0.0": true, "1.31.0-dev": true,
		"1.28.2": false, "1.9.0": false, "0.99.99": false, "": false, "1.30": false, "1.x.0": false, "1.-1.0": false,
	} {
		if got := atLeast(version, "1.28.3"); got != want {
			t.Errorf("atLeast(%q) = %v, want %v", version, got, want)
		}
	}
}

// A process that opens ONNX Runtime and runs a model leaves no file behind: its
// telemetry would leave a log, a session and a device's number.
func TestNoTelemetry(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestRunTypes$")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ORT_DISABLE_TELEMETRY=") && !strings.HasPrefix(v, "CI=") { // each switches it off
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, LibraryEnv+"="+rt.Path(), "TMPDIR="+dir, "HOME="+dir, "XDG_CACHE_HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkEmpty(t, dir)
}
