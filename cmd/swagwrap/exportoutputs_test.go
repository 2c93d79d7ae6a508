package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/internal/ort"
)

// A library in the place of ONNX Runtime ends its process in every way. export says how, and writes nothing.
func TestFaults(t *testing.T) {
	t.Parallel()
	c, dir := small(t), t.TempDir()
	run, out := executable(t, dir), filepath.Join(dir, "out.onnx")
	if printed, err := exec.Command(run, "fit", "-q", "--task", "classes", "-o", c.at("p"), c.paths[0], c.paths[1]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	for _, tt := range []struct {
		body, want string
		code       int
	}{
		{`abort();`, "SIGABRT", 65},
		{`*(volatile int *)0 = 1;`, "SIGSEGV", 65},
		{`pthread_t t; pthread_create(&t, 0, fault, 0); pthread_join(t, 0);`, "SIGSEGV", 65},
		{`ssize_t n = write(2, "double free\n", 12); (void)n; abort();`, "SIGABRT, double free", 65},
		{`_exit(0);`, "exit code 0", 65},
		{`ssize_t n = write(1, "{}\n", 3); (void)n; _exit(0);`, "exit code 0", 65},
		{`_exit(1);`, "exit code 1", 65},
		{`raise(SIGKILL);`, "SIGKILL", 1},
	} {
		library := compiled(t, tt.body+" return 0;")
		export := exec.Command("sh", "-c", `"$@"; echo $?`, "", run, "export", "--bn", "keep", "-o", out, c.at("p"))
		export.Env = append(os.Environ(), ort.LibraryEnv+"="+library)
		b, _ := export.CombinedOutput()
		printed := strings.TrimSpace(string(b))
		if !strings.Contains(printed, "\nerror: "+out+": ONNX Runtime ended its process when it ran the model: "+tt.want+"\nhint: ") ||
			!strings.HasSuffix(printed, "\n"+strconv.Itoa(tt.code)) {
			t.Errorf("%s: %s, want %s and exit code %d", tt.body, printed, tt.want, tt.code)
		}
		if _, err := os.Lstat(out); err == nil {
			t.Fatalf("%s: a file was written", tt.body)
		}
	}
}

// What ONNX Runtime prints on standard output is not part of the reply.
func TestPrintingLibrary(t *testing.T) {
	t.Parallel()
	c, dir := small(t), t.TempDir()
	real, err := ort.Provider{}.Find("")
	if err != nil {
		t.Fatal(err)
	}
	library := compiled(t, fmt.Sprintf(`ssize_t n = write(1, "hello", 5); (void)n;
		return ((const void *(*)(void))dlsym(dlopen(%q, RTLD_NOW), "OrtGetApiBase"))();`, real.Path))
	run, out := executable(t, dir), filepath.Join(dir, "out.onnx")
	for _, line := range [][]string{
		{"fit", "-q", "--task", "classes", "-o", c.at("p"), c.paths[0], c.paths[1]},
		{"export", "-q", "--bn", "keep", "--ort-lib", library, "-o", out, c.at("p")},
		{"doctor", "--ort-lib", library, out},
	} {
		if printed, err := exec.Command(run, line...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line[0], err, printed)
		}
	}
}

// compiled returns a library with this body of OrtGetApiBase.
func compiled(t *testing.T, body string) string {
	t.Helper()
	library := filepath.Join(t.TempDir(), "libonnxruntime.so")
	cc := exec.Command("sh", "-c", `$(go env CC) -shared -fPIC -o "$0" -x c - -lpthread -ldl`, library)
	cc.Stdin = strings.NewReader("#include <dlfcn.h>\n#include <pthread.h>\n#include <signal.h>\n#include <stdlib.h>\n#include <unistd.h>\n" +
		"void *fault(void *p) { *(volatile int *)0 = 1; return p; }\nconst void *OrtGetApiBase(void) { " + body + " }\n")
	if printed, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	return library
}
