package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// mutantTime is the processor time of a mutant before a signal stops it. The guarantee is not about time. A busy machine does
// not stop mutants earlier.
const mutantTime = 5 * time.Second

// TestMutants has damaged models fitted, drawn from and scored, which loads them into ONNX Runtime and runs them: each
// command ends with exit code 0, or 65 and one error, and an output is there if and only if it is 0. A crash in C++
// ends a process, so mutants run in others: the worker, this program again, says how far it is.
func TestMutants(t *testing.T) {
	n := reliability.Figure(100, 200_000)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		ended  = map[string]int{}
		failed int
		slow   time.Duration
	)
	start := time.Now()
	processes := min(runtime.NumCPU(), 8)
	for k := range processes {
		wg.Go(func() {
			dir := t.TempDir()
			exe := filepath.Join(dir, "mutants") // by this name TestMain knows what to be
			if err := os.Symlink(self, exe); err != nil {
				t.Error(err)
				return
			}
			for next, end := k*n/processes, (k+1)*n/processes; next < end; next++ {
				died := work(t, exe, dir, next, end, func(i int, took time.Duration, what string) {
					mu.Lock()
					defer mu.Unlock()
					next, slow = i+1, max(slow, took)
					if kind, bad := strings.CutPrefix(what, "bad: "); bad {
						failed++
						t.Errorf("mutant %d: %s\n%s", i, kind, keepMutant(t, i))
						return
					}
					ended[what]++
				})
				if died == "" {
					return
				}
				mu.Lock()
				failed++
				t.Errorf("mutant %d: %s\n%s", next, died, keepMutant(t, next))
				stop := failed > 20
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	var table strings.Builder
	for _, what := range slices.SortedFunc(maps.Keys(ended), func(a, b string) int { return ended[b] - ended[a] }) {
		fmt.Fprintf(&table, "\n%7d %s", ended[what], what)
	}
	t.Logf("%d mutants of %d networks in %.0f s, %d bad; the slowest took %.1f s%s", n, len(bred), time.Since(start).Seconds(), failed, slow.Seconds(), &table)
	if failed == 0 && (ended["scored"] < n/20 || ended["sample: 65"] < n/20) {
		t.Errorf("few mutants reach ONNX Runtime: the test shows little")
	}
}

// keepMutant writes a mutant to a folder that stays when the test is over.
func keepMutant(t *testing.T, i int) string {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		t.Error(err)
		return ""
	}
	networks, donors, err := breeds(dir)
	if err != nil {
		t.Error(err)
		return ""
	}
	paths, err := networks[i%len(networks)].write(uint64(i), donors)
	if err != nil {
		t.Error(err)
	}
	return strings.Join(paths[:], " ")
}

// work has a process run mutants from … end-1 and calls each for those that are done. If the process dies, work says how. It
// ends a process that hangs shortly before the tests' own time is over.
func work(t *testing.T, exe, dir string, from, end int, each func(i int, took time.Duration, what string)) (died string) {
	c := exec.Command(exe, dir, strconv.Itoa(from), strconv.Itoa(end))
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err.Error()
	}
	if err := c.Start(); err != nil {
		return err.Error()
	}
	if over, limited := t.Deadline(); limited {
		defer time.AfterFunc(time.Until(over)*9/10, func() { c.Process.Signal(syscall.SIGQUIT) }).Stop()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var i int
		var took time.Duration
		fields := strings.SplitN(lines.Text(), "\t", 3)
		if len(fields) != 3 {
			return "says " + lines.Text()
		}
		i, _ = strconv.Atoi(fields[0])
		took, _ = time.ParseDuration(fields[1])
		each(i, took, fields[2])
	}
	if err := c.Wait(); err != nil {
		printed := stderr.String()
		return fmt.Sprintf("the process ends with %v: %s", err, printed[:min(len(printed), 2000)])
	}
	return ""
}

// mutants is the worker. Its arguments are a folder for its files, the first mutant and the one behind the last.
func mutants() {
	if err := runMutants(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runMutants(dir, first, last string) error {
	from, err1 := strconv.Atoi(first)
	end, err2 := strconv.Atoi(last)
	networks, donors, err := breeds(dir)
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	debug.SetGCPercent(400) // there is little to keep
	for i := from; i < end; i++ {
		start := time.Now()
		what, err := networks[i%len(networks)].mutant(uint64(i), donors)
		if err != nil {
			what = "bad: " + err.Error()
		}
		fmt.Printf("%d\t%v\t%s\n", i, time.Since(start), strings.ReplaceAll(what, "\n", " / "))
	}
	return nil
}
