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
// the limit that they are given and the program itself. Each command ends within five
// seconds of processor time. A tenth of a second is usual, and other programs do not matter.
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
			c := exec.Command(program, args...)
			out, peak := measured(t, c)
			took, code := c.ProcessState.UserTime()+c.ProcessState.SystemTime(), c.ProcessState.ExitCode()
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

// Where the shell allows too few open files, a command ends with 75: elsewhere it may work.
func TestFewFiles(t *testing.T) {
	c := small(t)
	run := executable(t, t.TempDir())
	refused := 0
	const script = `exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n "$1"; shift; "$@"; echo $?` // a make or an editor may leave files open
	for _, limit := range []string{"9", "10", "11", "12", "13"} {
		out, _ := exec.Command("sh", append([]string{"-c", script, "", limit, run, "fit", "--task", "classes", "--force", "-q", "-o", c.at("p")}, c.paths[:]...)...).CombinedOutput()
		switch lines := strings.Split(strings.TrimSpace(string(out)), "\n"); lines[len(lines)-1] {
		case "0":
		case "75":
			refused++
			if !strings.HasPrefix(lines[0], "error: ") || !strings.Contains(lines[0], "too many open files") || !strings.Contains(string(out), "\nhint: ulimit -n ") {
				t.Errorf("ulimit -n %s: %s", limit, out)
			}
		default:
			t.Errorf("ulimit -n %s: %.500s", limit, out)
		}
	}
	if refused == 0 {
		t.Error("no limit was too low")
	}
}

// Where the shell allows too few addresses or too little data, Go ends in a dump. It does not begin.
func TestFewAddresses(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // the limit is Linux's
	}
	for limit, want := range map[string]int{"-v 400000": 75, "-v 1500000": 75, "-v 3000000": 0, "-d 40000": 75, "-d 100000": 75, "-d 4000000": 0} {
		out, _ := exec.Command("sh", "-c", `ulimit $1; "$2" --help; echo $?`, "", limit, executable(t, t.TempDir())).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		refused := len(lines) == 3 && strings.HasPrefix(lines[0], "error: ulimit "+limit[:2]+" ") && strings.HasPrefix(lines[1], "hint: ")
		if code := lines[len(lines)-1]; code == "75" != (want == 75) || refused != (want == 75) {
			t.Errorf("ulimit %s: %.300s", limit, out)
		}
	}
}
