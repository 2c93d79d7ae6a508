package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrInterrupted is returned for work that ended because its context did.
var ErrInterrupted = errors.New("interrupted")

// JobEnv holds a job as JSON in a process that a benchmark starts of itself.
const JobEnv = "SWAGWRAP_BENCH_JOB"

// A Process is a program to be measured.
type Process struct {
	Name    string   // in errors
	Argv    []string // the program and its arguments
	Threads int      // of the Go runtime, if it is a Go program
	Job     any      // if not nil, what a process of the benchmark itself does: see [Job]
}

// Run runs the process to its end and returns its standard output, and what it
// took from start to end. An error carries the last line of standard error that
// is no hint.
func (p Process) Run(ctx context.Context) (stdout []byte, u Usage, err error) {
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(p.Threads))
	if p.Job != nil {
		text, err := json.Marshal(p.Job)
		if err != nil {
			return nil, u, err
		}
		cmd.Env = append(cmd.Env, JobEnv+"="+string(text))
	}
	// A group of its own: Ctrl-C comes to this program alone, which ends it, and
	// with it the processes that it started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	start := time.Now()
	err = cmd.Run()
	u.Seconds = time.Since(start).Seconds()
	switch {
	case ctx.Err() != nil:
		return nil, u, ErrInterrupted
	case err != nil:
		return nil, u, fmt.Errorf("%s: %w: %s", p.Name, err, complaint(stderr.String()))
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, u, errors.New("this system does not tell what a process used")
	}
	u.CPU, u.PeakRSS = cpuSeconds(usage), peakRSS(usage)
	return out.Bytes(), u, nil
}

// complaint is the line of a program's standard error that says what went wrong.
func complaint(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for len(lines) > 1 && strings.HasPrefix(lines[len(lines)-1], "hint: ") {
		lines = lines[:len(lines)-1]
	}
	return lines[len(lines)-1]
}

// Parts reads what a process reports about the stretches of its work: a line of
// JSON for each.
func Parts[P any](stdout []byte) ([]P, error) {
	var parts []P
	for dec := json.NewDecoder(bytes.NewReader(stdout)); ; {
		var p P
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return parts, nil
		} else if err != nil {
			return nil, fmt.Errorf("report of the process: %w", err)
		}
		parts = append(parts, p)
	}
}

// WriteParts writes what [Parts] reads.
func WriteParts[P any](w io.Writer, parts []P) error {
	enc := json.NewEncoder(w)
	for _, p := range parts {
		if err := enc.Encode(p); err != nil {
			return err
		}
	}
	return nil
}

// Job reads the job of this process into job, a pointer, and reports whether it
// has one.
func Job(job any) (ok bool, err error) {
	text := os.Getenv(JobEnv)
	if text == "" {
		return false, nil
	}
	if err := json.Unmarshal([]byte(text), job); err != nil {
		return true, fmt.Errorf("%s: %w", JobEnv, err)
	}
	return true, nil
}

// Main is the frame of a benchmark: it calls f with a context that Ctrl-C ends,
// writes the error, if any, and returns the exit code.
func Main(stderr io.Writer, f func(ctx context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f(ctx); err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return 1
	}
	return 0
}
