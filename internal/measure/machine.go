package measure

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/internal/report"
)

// A Machine describes the machine and the software of a benchmark.
type Machine struct {
	CPU      string   `json:"cpu"`
	Cores    int      `json:"cores"`
	Versions []string `json:"versions"` // of Go and other software
	Date     string   `json:"date"`
	Before   string   `json:"load_before"` // load average; "" if the system does not report it
	After    string   `json:"load_after"`
}

// ThisMachine describes this machine. Call it before the measurements.
func ThisMachine(versions ...string) Machine {
	return Machine{CPU: cpuModel(), Cores: runtime.NumCPU(), Versions: append([]string{runtime.Version()}, versions...),
		Date: time.Now().Format(time.DateOnly), Before: load()}
}

// Done records the load average after the measurements.
func (m *Machine) Done() { m.After = load() }

// String returns the line below a table.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores; %s; %s", m.CPU, m.Cores, strings.Join(m.Versions, ", "), m.Date)
	if m.Before != "" {
		s += fmt.Sprintf("; load average %s before, %s after", m.Before, m.After)
	}
	return s
}

var modelName = regexp.MustCompile(`(?m)^model name\s*: (.*)$`)

func cpuModel() string {
	info, _ := os.ReadFile("/proc/cpuinfo") // Linux only
	if found := modelName.FindSubmatch(info); found != nil {
		return string(found[1])
	}
	return runtime.GOARCH
}

// load returns the load average over the last minute. Before the run it shows other work on the machine, and after it
// this run.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg") // Linux only
	first, _, _ := strings.Cut(string(b), " ")
	return first
}

// Torch returns the version of the interpreter's PyTorch, such as "torch 2.15.0". It returns "" without PyTorch or
// without an interpreter.
func Torch(ctx context.Context, python string) string {
	if python == "" {
		return ""
	}
	out, err := exec.CommandContext(ctx, python, "-c", "import torch; print(torch.__version__)").Output()
	if err != nil {
		return ""
	}
	return "torch " + strings.TrimSpace(string(out))
}

// CheckSpace fails if the file system of dir has less than the given number of
// bytes free.
func CheckSpace(dir string, bytes int64) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if free := int64(fs.Bavail) * int64(fs.Bsize); free < bytes {
		return fmt.Errorf("%s: %s free, want %s: choose another folder with --dir", dir, report.Bytes(free), report.Bytes(bytes))
	}
	return nil
}

// Digits formats x, which is 0 or more, with three significant digits. It returns "" for 0.
func Digits(x float64) string {
	if x == 0 {
		return ""
	}
	return report.Fixed(x, max(0, 2-int(math.Floor(math.Log10(x)))))
}
