package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// tries is a place in which try can be run in processes of its own, on a small table.
type tries struct {
	dir, exe string
	files    []string
}

func newTries(t *testing.T) *tries {
	t.Helper()
	at := func(name string) string { return absolute(t, "testdata", name) }
	test := filepath.Join(t.TempDir(), "test.csv")
	if err := os.WriteFile(test, []byte("age,bmi,bp,label\n"+strings.Repeat("0.5,-1,2,yes\n1.5,0.25,-3,no\n-0.5,2,0,yes\n3,1,1,no\n", 4)), 0o666); err != nil {
		t.Fatal(err)
	}
	return &tries{t.TempDir(), executable(t, t.TempDir()), []string{at("table-1.onnx"), at("table-2.onnx"), test}}
}

func (r *tries) command(args ...string) *exec.Cmd {
	c := exec.Command(r.exe, slices.Concat([]string{"try", "-o", "out", "-n", "2", "--methods", "swa,swag"}, args, r.files)...)
	c.Dir = r.dir
	return c
}

// whole checks that the place has nothing but the folder, with all its files as its list says. It returns its ensemble.
func (r *tries) whole(t *testing.T) []byte {
	t.Helper()
	if names := list(t, r.dir); !slices.Equal(names, []string{"out"}) {
		t.Errorf("files %q, want out", names)
	}
	check := exec.Command("sha256sum", "--check", "--quiet", "files.sha256")
	check.Dir = filepath.Join(r.dir, "out")
	if printed, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, printed)
	}
	for _, name := range []string{"posterior.safetensors", "ensemble.onnx", "report.html", "NEXT.md", "commands.sh", "table.txt", "figures.json"} {
		if _, err := os.Stat(filepath.Join(check.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(check.Dir, "ensemble.safetensors"))
	if err != nil {
		t.Error(err)
	}
	return b
}

// TestTryTogether: of six runs at once in one folder, one makes it, with all its files. The others end with 75, or with 64 if they
// come after it. With --force one that comes later replaces the folder.
func TestTryTogether(t *testing.T) {
	t.Parallel()
	r := newTries(t)
	for _, force := range []bool{false, true} {
		codes := map[int]int{}
		var runs []*exec.Cmd
		var printed []string
		for range 6 {
			c := r.command("-q", fmt.Sprintf("--force=%v", force))
			c.Stderr = new(bytes.Buffer)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			runs = append(runs, c)
		}
		for _, c := range runs {
			c.Wait()
			codes[c.ProcessState.ExitCode()]++
			printed = append(printed, fmt.Sprint(c.Stderr))
		}
		r.whole(t)
		if sum := codes[0] + codes[75] + codes[64]; sum != 6 || codes[0] == 0 || !force && codes[0] != 1 || force && codes[64] > 0 {
			t.Errorf("force %v: exit codes %v: %q", force, codes, printed)
		}
	}
}

// TestTryStopped: a try that is stopped at any of its steps leaves the old folder whole. After a signal nothing else is
// there. What kill -9 leaves is removed by the next try.
func TestTryStopped(t *testing.T) {
	t.Parallel()
	r := newTries(t)
	if printed, err := r.command().CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	want := r.whole(t)
	const steps = 4 // fit, compare, sample, export
	for step := range steps {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			c := r.command("--force", "--seed", "2")
			stderr, err := c.StderrPipe()
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stderr)
			for lines.Scan() && !strings.HasPrefix(lines.Text(), fmt.Sprintf("step %d: ", step+1)) {
			}
			c.Process.Signal(signal)
			io.Copy(io.Discard, stderr)
			c.Wait()
			if c.ProcessState.Success() { // it was faster
				want = r.whole(t)
				continue
			}
			if signal == syscall.SIGINT {
				if code := c.ProcessState.ExitCode(); code != 130 {
					t.Errorf("step %d: exit code %d", step+1, code)
				}
			} else {
				next := r.command("--force", "--state-dict", "none") // it ends at its first step
				if printed, _ := next.CombinedOutput(); next.ProcessState.ExitCode() != 64 {
					t.Fatalf("%s", printed)
				}
			}
			if got := r.whole(t); !bytes.Equal(got, want) {
				t.Errorf("step %d, %v: another ensemble", step+1, signal)
			}
		}
	}
	if printed, err := r.command("--force").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, printed)
	}
	r.whole(t)
}
