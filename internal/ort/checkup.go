package ort

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

// A Checkup describes the machine and its ONNX Runtime. Unknown fields are empty.
type Checkup struct {
	Go        string   `json:"go"`        // the compiler's version
	Platform  string   `json:"platform"`  // GOOS/GOARCH
	System    string   `json:"system"`    // kernel and its version
	CLibrary  string   `json:"c_library"` // glibc and its version
	Processor string   `json:"processor"`
	Cores     int      `json:"cores"`    // available to this process
	Features  []string `json:"features"` // features of the processor that speed up networks
	Memory    string   `json:"memory"`   // available and total

	Library   string   `json:"library"` // the path that was tried
	Found     string   `json:"found"`   // the source of the path: a flag, a variable or a default
	Version   string   `json:"version"`
	Pinned    string   `json:"pinned"` // the version that Install fetches
	Providers []string `json:"providers"`

	Cache  string  `json:"cache"`  // the folder of Install, or the problem with it
	Others []Other `json:"others"` // the other providers that are offered for the platform
	Temp   string  `json:"temp"`   // the folder for temporary files, or the problem with it

	Environment []string `json:"environment"` // relevant variables that are set, as NAME=value

	Device  string `json:"device"`  // the GPUs, with their drivers
	Run     string `json:"run"`     // the result of a tiny network, and the speed of a product of matrices
	Problem string `json:"problem"` // the reason why no network can run; empty if all is well
}

// Other is a provider other than the CPU's.
type Other struct {
	Name    string `json:"name"`
	Cache   string `json:"cache"`             // as in Checkup
	Checked string `json:"checked,omitempty"` // what a Checkup of this provider found; empty if it is not installed
}

// variables lists the environment variables that change where files are searched or how many resources are used.
var variables = []string{LibraryEnv, PythonEnv, "XDG_CACHE_HOME", "TMPDIR", "LD_LIBRARY_PATH", "GOMAXPROCS", "GOMEMLIMIT"}

// Check examines the machine, finds the library as [Provider.Find] does, opens it, and runs a tiny network. An error
// is as of [Provider.Open] or the context's. The Checkup is complete as far as possible, even after an error.
func Check(ctx context.Context, p Provider, explicit string) (Checkup, error) {
	c := Checkup{
		Go: runtime.Version(), Platform: platform(), System: system(), Processor: Processor(), Cores: runtime.GOMAXPROCS(0),
		Features: features(), Memory: memoryAtHand(), Pinned: Version, Cache: Provider{}.cacheState(), Temp: tempState(),
	}
	for _, name := range Names[1:] {
		other := Provider{Name: name}
		if _, _, err := other.cached(); err == nil {
			c.Others = append(c.Others, Other{Name: name, Cache: other.cacheState()})
		}
	}
	if v := libc(); v != "" {
		c.CLibrary = "glibc " + v
	}
	for _, name := range variables {
		if v := os.Getenv(name); v != "" {
			c.Environment = append(c.Environment, name+"="+v)
		}
	}
	err := c.tryLibrary(ctx, p, explicit)
	if err != nil {
		c.Problem = err.Error()
	}
	return c, err
}

func (c *Checkup) tryLibrary(ctx context.Context, p Provider, explicit string) error {
	l, err := p.Find(explicit)
	c.Library, c.Found = l.Path, l.By
	if err != nil {
		return err
	}
	if devices := p.kind().devices; devices != nil {
		c.Device = devices()
	}
	rt, err := p.Open(l)
	if err != nil {
		return err
	}
	c.Version, c.Providers = rt.Version(), rt.Providers()
	start := time.Now()
	if err := rt.try(ctx, p); err != nil {
		return err
	}
	took := time.Since(start)
	speed, err := rt.speed(ctx, p)
	c.Run = fmt.Sprintf("right, in %v; a product of matrices runs at %.3g GFLOP/s", took.Round(100*time.Microsecond), speed)
	return err
}

// product multiplies two square matrices.
//
//go:embed testdata/matmul.onnx
var product []byte

// speed returns the speed of the product of two matrices of 1024×1024 in 10⁹ operations per second, the best of four
// runs. The matrices travel to the provider in each run.
func (r *Runtime) speed(ctx context.Context, p Provider) (best float64, err error) {
	const n = 1024
	s, err := r.NewSession(product, Options{Provider: p})
	if err != nil {
		return 0, err
	}
	defer s.Close()
	in := make([]float32, n*n)
	for range 4 {
		start := time.Now()
		if _, err = s.Run(ctx, []Tensor{{Name: "a", Shape: []int64{n, n}, F32: in},
			{Name: "b", Shape: []int64{n, n}, F32: in}}); err != nil {
			return 0, err
		}
		best = max(best, 2*n*n*n/1e9/time.Since(start).Seconds())
	}
	return best, nil
}

// tiny is y = xW + b in small integers, so all machines give the same bits.
//
//go:embed testdata/linear.onnx
var tiny []byte

func (r *Runtime) try(ctx context.Context, p Provider) error {
	s, err := r.NewSession(tiny, Options{Threads: 1, Provider: p})
	if err != nil {
		return cmp.Or(ctx.Err(), Provider{}.unusable(r.path, "a tiny network does not load: "+err.Error(), err))
	}
	defer s.Close()
	out, err := s.Run(ctx, []Tensor{{Name: "x", Shape: []int64{2, 3}, F32: []float32{1, 0, 0, 1, 1, 1}}})
	if err != nil {
		return cmp.Or(ctx.Err(), Provider{}.unusable(r.path, "a tiny network does not run: "+err.Error(), err))
	}
	if want := []float32{11, 22, 19, 32}; !slices.Equal(out[0].F32, want) {
		return &LibraryError{Path: r.path, Reason: fmt.Sprintf("a tiny network gives %v, want %v", out[0].F32, want)}
	}
	return nil
}

// features returns the features of the processor that network kernels use.
func features() []string {
	x, a := &cpu.X86, &cpu.ARM64
	var have []string
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"SSE4.1", x.HasSSE41}, {"AVX", x.HasAVX}, {"AVX2", x.HasAVX2}, {"FMA", x.HasFMA}, {"AVX512F", x.HasAVX512F},
		{"AVX512BW", x.HasAVX512BW},
		{"AVX512VNNI", x.HasAVX512VNNI}, {"AVX512BF16", x.HasAVX512BF16}, {"AVXVNNI", x.HasAVXVNNI}, {"AMX-TILE", x.HasAMXTile},
		{"AMX-BF16", x.HasAMXBF16},
		{"ASIMD", a.HasASIMD}, {"FPHP", a.HasFPHP}, {"ASIMDHP", a.HasASIMDHP}, {"ASIMDDP", a.HasASIMDDP}, {"SVE", a.HasSVE},
		{"SVE2", a.HasSVE2}, {"I8MM", a.HasI8MM},
	} {
		if f.has {
			have = append(have, f.name)
		}
	}
	return have
}

func system() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	words := []string{unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:])}
	return strings.Join(words, " ")
}

// Processor and memoryAtHand read what Linux reports.
func Processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	_, rest, _ := bytes.Cut(info, []byte("model name"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	_, name, _ := bytes.Cut(line, []byte(":"))
	return string(bytes.TrimSpace(name))
}

func memoryAtHand() string {
	available, all := memory.Machine()
	if all == 0 {
		return ""
	}
	const gigabyte = 1 << 30
	return fmt.Sprintf("%.1f of %.1f GiB available", float64(available)/gigabyte, float64(all)/gigabyte)
}

// cacheState describes the folder of Install: its libraries, or whether it can be written.
func (p Provider) cacheState() string {
	b, dir, err := p.cached()
	if err != nil {
		return err.Error()
	}
	_, missing := os.Stat(b.main(dir))
	denied := writable(dir)
	switch err := b.check(dir); {
	case missing != nil && p.Explicit():
		return "not installed: " + setting.Line(p.setup())
	case missing != nil && denied != nil:
		return dir + ": cannot be written: " + reason(denied)
	case missing != nil:
		return dir + ": nothing in it"
	case err != nil:
		return dir + ": " + reason(err)
	case slices.Contains(p.Low(), BF16):
		return dir + ": its libraries are whole; " + setting.Precision.With("auto") + " is " + autoPrecision()
	}
	return dir + ": its library is whole"
}

// autoPrecision describes the choice of --precision auto.
func autoPrecision() string {
	if feature := FastBF16(); feature != "" {
		return BF16 + ", by " + feature
	}
	return F32
}

// tempState makes and removes a temporary folder, as networks with external data need one.
func tempState() string {
	dir, err := tempfile.Folder()
	if err != nil {
		var temp *tempfile.TempError
		if errors.As(err, &temp) {
			err = temp.Err
		}
		return fmt.Sprintf("%s: cannot be written: %s", os.TempDir(), reason(err))
	}
	defer tempfile.Remove(dir)
	return os.TempDir() + ": can be written"
}
