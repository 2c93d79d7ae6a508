package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Models of some hundred bytes that ask for gigabytes take 200 MB at most, which is
// the limit that they are given and the program itself, and end in five seconds.
func TestBombs(t *testing.T) {
	bombs, err := filepath.Glob(filepath.Join("testdata", "bombs", "*.onnx"))
	if err != nil || len(bombs) < 12 {
		t.Fatalf("%d bombs, %v", len(bombs), err)
	}
	dir := t.TempDir()
	program := executable(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, bomb := range bombs {
		model, err := os.ReadFile(bomb)
		if err != nil {
			t.Fatal(err)
		}
		first := []byte{0x19, 0x04, 0x9e, 0x3f} // 1.2345
		if err := os.WriteFile(at("2.onnx"), bytes.Replace(model, first, []byte{0, 0, 0x9e, 0x3f}, 1), 0o666); err != nil {
			t.Fatal(err)
		}
		var said string
		for _, args := range [][]string{
			{"inspect", bomb},
			{"fit", "-q", "--force", "--task", "classes", "-o", at("p"), bomb, at("2.onnx")},
			{"sample", "-q", "--force", "-n", "2", "-o", at("e"), at("p")},
			{"score", "-q", "--memory", "128M", "-o", at("no.csv"), at("e"), filepath.Join("testdata", "bombs", "x.npy")},
		} {
			start := time.Now()
			c := exec.Command(program, args...)
			out, peak := measured(t, c)
			took, code := time.Since(start), c.ProcessState.ExitCode()
			if peak > 200<<20 || took > 5*time.Second {
				t.Errorf("%s: %s took %d MB and %v", filepath.Base(bomb), args[0], peak>>20, took)
			}
			if said = out; code != 0 {
				if code != 65 || !strings.HasPrefix(said, "error: ") {
					t.Errorf("%s: %s: exit code %d: %s", filepath.Base(bomb), args[0], code, said)
				}
				break
			}
			said = ""
		}
		if _, err := os.Stat(at("no.csv")); said == "" || err == nil {
			t.Errorf("%s: is scored, %v", filepath.Base(bomb), err)
		}
	}
}

// Where the shell allows too few addresses, Go ends in a dump. It does not begin.
func TestFewAddresses(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the limit is Linux's
	}
	for kilobytes, want := range map[string]int{"400000": 75, "1500000": 75, "3000000": 0} {
		out, _ := exec.Command("sh", "-c", `ulimit -v "$1"; "$2" --help; echo $?`, "", kilobytes, executable(t, t.TempDir())).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		refused := len(lines) == 3 && strings.HasPrefix(lines[0], "error: ulimit -v ") && strings.HasPrefix(lines[1], "hint: ")
		if code := lines[len(lines)-1]; code == "75" != (want == 75) || refused != (want == 75) {
			t.Errorf("ulimit -v %s: %.300s", kilobytes, out)
		}
	}
}
