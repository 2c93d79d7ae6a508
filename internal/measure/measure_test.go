package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// A job of the test, which starts itself for it.
type job struct{ Text string }

func TestMain(m *testing.M) {
	var j job
	if ok, err := Job(&j, os.Stdout, func() ([]Part, error) {
		if j.Text == "fail" {
			os.Stderr.WriteString("one\ntwo\nhint: three\n\n")
			os.Exit(3)
		}
		p := Part{Part: j.Text}
		err := p.Add(burn)
		return []Part{p}, err
	}); ok {
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var touched []byte

// burn keeps a processor busy for 50 ms and touches 64 MiB.
func burn() error {
	touched = make([]byte, 64<<20)
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		for i := 0; i < len(touched); i += 4096 {
			touched[i]++
		}
	}
	return nil
}

func self(text string) Process { return Process{Name: "the job", Threads: 1, Job: job{text}} }

func TestProcess(t *testing.T) {
	parts, whole, err := self("x").Run(t.Context())
	if err != nil || len(parts) != 1 || parts[0].Part != "x" {
		t.Fatalf("parts %+v, error %v, want the one of job x", parts, err)
	}
	// The wall is at least what burn waits for. The processor may be taken away
	// from it, so that a bound from below for its time is loose.
	in := parts[0].Usage
	if in.Seconds < 0.05 || whole.Seconds < in.Seconds {
		t.Errorf("%v s within %v s, want at least 0.05", in.Seconds, whole.Seconds)
	}
	if in.CPU <= 0 || whole.CPU < in.CPU {
		t.Errorf("CPU: %v s within %v s, want some", in.CPU, whole.CPU)
	}
	if whole.PeakRSS < 64<<20 || whole.PeakRSS > 1<<30 {
		t.Errorf("peak RSS is %d, want the 64 MiB touched and little more", whole.PeakRSS)
	}
}

func TestProcessFails(t *testing.T) {
	if _, _, err := self("fail").Run(t.Context()); err == nil || err.Error() != "the job: exit status 3: two" {
		t.Errorf("error %v, want the last line of standard error but for the hint", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := self("x").Run(ctx); !errors.Is(err, ErrInterrupted) {
		t.Errorf("error %v, want %v", err, ErrInterrupted)
	}
	if _, err := readParts(strings.NewReader(`{"part": "x"}`+"\nTraceback"), Usage{}); err == nil {
		t.Error("what is no JSON: no error")
	}
	t.Setenv(JobEnv, "{")
	if ok, err := Job(&job{}, nil, nil); !ok || err == nil {
		t.Error("a broken job: no error")
	}
}

// An interrupted process takes the ones that it started with it: else they
// would hold its standard output, and Run would wait for their end.
func TestProcessChildren(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, _, err := Process{Name: "shell", Argv: []string{"sh", "-c", "sleep 60 & wait"}, Threads: 1}.Run(ctx)
	if took := time.Since(start); !errors.Is(err, ErrInterrupted) || took > 30*time.Second {
		t.Errorf("error %v after %v, want %v at once", err, took, ErrInterrupted)
	}
}

func TestMainFrame(t *testing.T) {
	var stderr strings.Builder
	if code := Main(&stderr, func(context.Context) error { return nil }); code != 0 || stderr.Len() > 0 {
		t.Errorf("exit code %d, %q, want 0 and nothing", code, &stderr)
	}
	if code := Main(&stderr, func(context.Context) error { return errors.New("no") }); code != 1 || stderr.String() != "error: no\n" {
		t.Errorf("exit code %d, %q, want 1 and the error", code, &stderr)
	}
}

// The frame measures, shows and saves what was found, and leaves nothing behind.
func TestBench(t *testing.T) {
	o := Options{Swagwrap: "measure.go", Dir: t.TempDir(), JSON: filepath.Join(t.TempDir(), "figures.json")}
	row, left := &Row{Name: "work", Threads: 1}, 0
	p := self("x")
	p.Rows, p.After = map[string]*Row{"x": row, "": row}, func() error { left++; return nil }
	var said strings.Builder
	measured := func(string) (*Result[Timing], error) {
		err := Measure(t.Context(), []Process{p}, 2, func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) })
		return &Result[Timing]{Machine: ThisMachine(), Job: "the work", Lines: []Timing{row.Timing()}, Notes: []string{"a note"}}, err
	}
	var out strings.Builder
	err := Bench(o, &out, measured, Columns("work", "seconds"), func(l Timing) []string { return []string{"burn", Digits(l.Seconds)} })
	if err != nil || left != 2 || len(row.Parts) != 4 {
		t.Fatalf("error %v, cleaned up %d times after 2, %d measurements, want 4", err, left, len(row.Parts))
	}
	if !strings.HasPrefix(out.String(), "the work\n\n") || !strings.Contains(out.String(), "burn") || !strings.Contains(out.String(), "a note") {
		t.Errorf("%q lacks job, line or note", &out)
	}
	if !strings.HasPrefix(said.String(), "round 1 of 2: the job, threads 1\n") || strings.Count(said.String(), "peak RSS") != 2 {
		t.Errorf("%q, want a word before and after each process", &said)
	}
	var r Result[Timing]
	b, err := os.ReadFile(o.JSON)
	if err = errors.Join(err, json.Unmarshal(b, &r)); err != nil || r.Lines[0].Least < 0.05 || len(r.Lines[0].Runs) != 4 {
		t.Errorf("error %v, lines %+v", err, r.Lines)
	}
	stop := errors.New("stop")
	if err := Bench(o, &out, func(string) (*Result[Timing], error) { return nil, stop }, nil, nil); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	if in, err := os.ReadDir(o.Dir); err != nil || len(in) > 0 {
		t.Errorf("error %v, left behind: %v", err, in)
	}
	o.Swagwrap = "missing"
	if err := Bench(o, &out, measured, nil, nil); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("error %v, want what builds the program", err)
	}
	if err := row.Add(Part{Checksum: 1}); err == nil {
		t.Error("another checksum in another round: no error")
	}
}

func TestRounds(t *testing.T) {
	var got []int
	note := func(round, task int) error {
		got = append(got, 10*round+task)
		return nil
	}
	if err := Rounds([]int{1, 2, 3}, 3, note); err != nil {
		t.Fatal(err)
	}
	if want := []int{11, 12, 13, 23, 22, 21, 31, 32, 33}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	stop := errors.New("stop")
	if err := Rounds([]int{1, 2}, 2, func(int, int) error { return stop }); err != stop {
		t.Errorf("error %v, want %v", err, stop)
	}
}

func TestMedian(t *testing.T) {
	x := []float64{9, 1, 2}
	if m := Median(x); m != 2 || !slices.Equal(x, []float64{9, 1, 2}) {
		t.Errorf("median %v of %v, want 2 and nothing moved", m, x)
	}
	if m := Median([]float64{4, 1, 2, 100}); m != 3 {
		t.Errorf("median %v, want 3", m)
	}
}

func TestDigits(t *testing.T) {
	for x, want := range map[float64]string{0: "", 0.00123456: "0.00123", 0.5: "0.500", 1.2345: "1.23", 12.345: "12.3", 123.45: "123", 12345: "12345"} {
		if got := Digits(x); got != want {
			t.Errorf("%v is %q, want %q", x, got, want)
		}
	}
}

func TestMachine(t *testing.T) {
	m := ThisMachine("torch 9.9")
	m.Done()
	if s := m.String(); !strings.Contains(s, "torch 9.9; "+m.Date) || !strings.Contains(s, m.CPU) {
		t.Errorf("%q does not tell the machine %+v", s, m)
	}
	if v := Torch(t.Context(), "false"); v != "" {
		t.Errorf("%q of an interpreter without", v)
	}
	if err := CheckSpace(t.TempDir(), math.MaxInt64); err == nil || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("error %v, want a disk that is too small", err)
	}
}
