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

	"github.com/swagwrap/swagwrap/internal/report"
)

// ErrInterrupted reports that the context of a measurement ended.
var ErrInterrupted = errors.New("interrupted")

// JobEnv is the environment variable with the job, as JSON, of a process that a benchmark starts of itself.
const JobEnv = "SWAGWRAP_BENCH_JOB"

// A Process is a program to be measured.
type Process struct {
	Name    string          // for errors
	Argv    []string        // the program and its arguments
	Threads int             // GOMAXPROCS, if it is a Go program
	Job     any             // instead of Argv: a job for the benchmark's own program, see [Job]
	Rows    map[string]*Row // by part; "" is the whole process, from start to end
	After   func() error    // cleans up after the process; may be nil
}

// A Part is a process's report about one part of its work, written as a line of JSON. The benchmarks' Python scripts
// write the same format.
type Part struct {
	Part  string `json:"part"`
	Usage        // the memory is the peak of the process so far; 0 means that of the whole process
	Drawn int    `json:"drawn"` // members drawn, if fewer than asked for were drawn and the time is scaled up

	// The results of the computation show that all sides computed the same. 0 means not reported.
	Checksum   uint64  `json:"checksum"`   // of the result; the same for any number of threads
	Mean       float64 `json:"mean"`       // ‖θ_SWA‖²
	Variance   float64 `json:"variance"`   // trace of Σ_diag
	Deviations float64 `json:"deviations"` // ‖D̂‖²
	Spread     float64 `json:"spread"`     // mean of ‖θ̃ − θ_SWA‖² over the members
	Off        float64 `json:"off"`        // greatest total variation distance of an example's probabilities from swagwrap's

	First float64 `json:"first"` // seconds from the start of the process to the first row of its result; 0 means not reported
}

// Add runs f and adds the time that it takes.
func (p *Part) Add(f func() error) error {
	u, err := Func(f)
	p.Seconds += u.Seconds
	p.CPU += u.CPU
	return err
}

// Run runs the process to its end. It returns the parts that it reports, and its usage from start to end. An error
// contains the last line of standard error that is not a hint.
func (p Process) Run(ctx context.Context) (parts []Part, u Usage, err error) {
	env := append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(p.Threads))
	if p.Job != nil {
		self, err1 := os.Executable()
		job, err2 := json.Marshal(p.Job)
		if err := errors.Join(err1, err2); err != nil {
			return nil, u, err
		}
		p.Argv, env = []string{self}, append(env, JobEnv+"="+string(job))
	}
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	cmd.Env = env
	// A process group of its own: Ctrl-C reaches only this program, which then kills the process and all its
	// children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
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
	if parts, err = readParts(&stdout, u); err != nil {
		err = fmt.Errorf("%s: report of the process: %w", p.Name, err)
	}
	return parts, u, err
}

// complaint returns the last line of standard error that is not a hint.
func complaint(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	for len(lines) > 1 && strings.HasPrefix(lines[len(lines)-1], "hint: ") {
		lines = lines[:len(lines)-1]
	}
	return lines[len(lines)-1]
}

// readParts reads the report of a process, one line for each part.
func readParts(r io.Reader, whole Usage) (parts []Part, err error) {
	for dec := json.NewDecoder(r); ; {
		p := Part{}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return parts, nil
		} else if err != nil {
			return nil, err
		}
		if p.PeakRSS == 0 {
			p.PeakRSS = whole.PeakRSS
		}
		parts = append(parts, p)
	}
}

// Measure runs every process in each of the given number of rounds, and adds the reported parts to its rows. It
// reports progress with say.
func Measure(ctx context.Context, processes []Process, rounds int, say func(format string, args ...any)) error {
	return Rounds(processes, rounds, func(round int, p Process) error {
		say("round %d of %d: %s, threads %d", round, rounds, p.Name, p.Threads)
		parts, whole, err := p.Run(ctx)
		if err != nil {
			return err
		}
		say("%s s in all, peak RSS %s", Digits(whole.Seconds), report.Bytes(whole.PeakRSS))
		for _, part := range append(parts, Part{Usage: whole}) {
			if r := p.Rows[part.Part]; r != nil {
				err = errors.Join(err, r.Add(part))
			}
		}
		if p.After != nil {
			err = errors.Join(err, p.After())
		}
		return err
	})
}

// Job runs this process's job and reports whether it has one. It decodes the job into the pointer job, calls work,
// and writes the parts that work returns.
func Job(job any, stdout io.Writer, work func() ([]Part, error)) (ok bool, err error) {
	text := os.Getenv(JobEnv)
	if text == "" {
		return false, nil
	}
	if err := json.Unmarshal([]byte(text), job); err != nil {
		return true, fmt.Errorf("%s: %w", JobEnv, err)
	}
	parts, err := work()
	enc := json.NewEncoder(stdout)
	for _, p := range parts {
		err = errors.Join(err, enc.Encode(p))
	}
	return true, err
}

// Main runs a benchmark. It calls f with a context that Ctrl-C cancels, writes the error if there is one, and returns
// the exit code.
func Main(stderr io.Writer, f func(ctx context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f(ctx); err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		return 1
	}
	return 0
}
