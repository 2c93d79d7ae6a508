package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
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
		var printed string
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
			if printed = out; code != 0 {
				if code != 65 || !strings.HasPrefix(printed, "error: ") {
					t.Errorf("%s: %s: exit code %d: %s", filepath.Base(bomb), args[0], code, printed)
				}
				break
			}
			printed = ""
		}
		if _, err := os.Stat(at("no.csv")); printed == "" || err == nil {
			t.Errorf("%s: is scored, %v", filepath.Base(bomb), err)
		}
	}
}

// Where the shell allows too few open files, a command ends with 75 and without its output: elsewhere it may work. Below 32
// it does not begin, and later it says which file it could not open.
func TestFewFiles(t *testing.T) {
	dir := t.TempDir()
	program := executable(t, dir)
	few := fewImages(t, absolute(t, "..", "..", "fixtures", "mnist"), 60)
	at := func(name string) string { return filepath.Join(few, name) }
	posterior, ensemble, out := filepath.Join(dir, "p.safetensors"), filepath.Join(dir, "e.safetensors"), filepath.Join(dir, "out")
	fit := []string{"--template", at("model.onnx"), "--preprocess", "mean=0.1307 std=0.3081", "--augment", "none"}
	train := []string{"--bn-data", at("train.npz"), "--bn-samples", "32"}
	for _, args := range [][]string{
		slices.Concat([]string{"fit", "-q", "--task", "classes", "-o", posterior}, fit, []string{at("states")}),
		slices.Concat([]string{"sample", "-q", "-n", "2", "-o", ensemble}, train, []string{posterior}),
	} {
		if printed, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, printed)
		}
	}
	refused, n := map[string]int{}, reliability.Figure(7, 43)
	for k := range n {
		limit := 4 + k*42/(n-1) // with less the linker does not begin the program
		for _, args := range [][]string{
			slices.Concat([]string{"fit", "-q", "--task", "classes", "-o", out}, fit, []string{at("states")}),
			{"inspect", ensemble},
			slices.Concat([]string{"sample", "-q", "-n", "2", "-o", out}, train, []string{posterior}),
			{"score", "-q", "-o", out + ".csv", ensemble, at("test.npz")},
			slices.Concat([]string{"compare", "-q", "-n", "2", "--methods", "sgd,swag", "--json"}, train, []string{posterior, at("test.npz")}),
			{"export", "-q", "-o", out + ".onnx", ensemble},
			slices.Concat([]string{"try", "-q", "-n", "2", "-o", out, "--val", at("val.npz")}, fit, train, []string{at("states"), at("test.npz")}),
		} {
			cmd := exec.Command("sh", slices.Concat([]string{"-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(limit), program}, args)...)
			printed, _ := cmd.CombinedOutput()
			left, err := filepath.Glob(out + "*")
			if err != nil {
				t.Fatal(err)
			}
			switch code := cmd.ProcessState.ExitCode(); {
			case code == 75:
				refused[args[0]]++
				first, _, _ := strings.Cut(string(printed), "\n")
				if !strings.HasPrefix(first, "error: ") || !strings.Contains(first, "too many open files") || !strings.Contains(string(printed), "\nhint: ulimit -n ") || len(left) > 0 {
					t.Errorf("%s with %d files: %s, left %q", args[0], limit, printed, left)
				}
			case code != 0 || limit < 32:
				t.Errorf("%s with %d files: exit code %d: %.500s", args[0], limit, code, printed)
			}
			for _, path := range left {
				os.RemoveAll(path)
			}
		}
	}
	if refused["fit"] <= refused["inspect"] {
		t.Errorf("refused %v: fit opens 30 checkpoints", refused)
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
