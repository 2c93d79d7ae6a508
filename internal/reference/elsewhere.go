package reference

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
)

// A Runtime runs models in another process. A small program in its language reads a file that says what to run, and gets the name of that
// file as its last argument. The file has records of five fields. Each field ends in a zero byte, the only byte that no path has:
//
//	model   path
//	input   name  type   shape  file
//	output  name  place  file
//
// What a record has no use for is empty. The files have elements in the layout of memory. Those of outputs are float64. The program prints
// the version.
type Runtime struct {
	Name    string
	Install string // what to type where it is not there

	program string   // its file
	command []string // names of what starts it; the first that is installed does
	options []string // before the program
	module  bool     // the program gets the name of the runtime first
	absent  string   // what is printed without its library, besides exit code 69
}

//go:embed runtimes
var programs embed.FS

// Runtimes are the runtimes that are known.
var Runtimes = []Runtime{
	{Name: "onnxruntime", Install: "pip install onnxruntime", program: "run.py", command: python, module: true},
	{Name: "openvino", Install: "pip install openvino", program: "run.py", command: python, module: true},
	{Name: "tract", Install: "pip install tract numpy", program: "run.py", command: python, module: true},
	{Name: "node", Install: "npm install onnxruntime-node", program: "run.mjs", command: []string{"node"}},
	{
		Name: "java",
		Install: "mvn dependency:copy -Dartifact=com.microsoft.onnxruntime:onnxruntime:1.29.0 -DoutputDirectory=. && " +
			"export CLASSPATH=onnxruntime-1.29.0.jar",
		program: "Run.java",
		command: []string{"java"},
		options: []string{"-Duser.language=en", "-XX:ErrorFile=/dev/null"},
		absent:  "package ai.onnxruntime does not exist",
	},
}

var python = []string{"python3", "python"}

// start returns the command of the program, which it writes into a folder.
func (r *Runtime) start(folder string) ([]string, error) {
	text, err := programs.ReadFile("runtimes/" + r.program)
	path := filepath.Join(folder, r.program)
	if err = errors.Join(err, os.WriteFile(path, text, 0o600)); err != nil {
		return nil, err
	}
	interpreter := ""
	if r.module {
		interpreter = os.Getenv("SWAGWRAP_PYTHON")
	}
	for _, name := range r.command {
		if _, err := exec.LookPath(name); interpreter == "" && name != "" && err == nil {
			interpreter = name
		}
	}
	if interpreter == "" {
		return nil, &Absent{r, fmt.Sprintf("no program %q", r.command[len(r.command)-1])}
	}
	command := append(append([]string{interpreter}, r.options...), path)
	if r.module {
		command = append(command, r.Name)
	}
	return command, nil
}

// Absent is the error for a runtime that is not installed.
type Absent struct {
	*Runtime
	Why string
}

func (e *Absent) Error() string { return fmt.Sprintf("runtime %s: is not here: %s", e.Name, e.Why) }

// Elsewhere is what a model gave in another runtime.
type Elsewhere struct {
	Version string
	Difference
	Here          float64 // the largest difference from swagwrap's own ONNX Runtime, in the same units; −1 without one
	Flags, Others int     // true and false of sets and abstentions, and how many differ from those of that ONNX Runtime
	Guarded, NaN  bool    // the model has to show NaN in an input; its outputs do
}

// A Late is the error for a runtime that did not end in time.
type Late struct {
	*Runtime
	After time.Duration
}

func (e *Late) Error() string {
	return fmt.Sprintf("runtime %s: has not ended after %v", e.Name, e.After)
}

// Place says where the files of another runtime are, and how long each of its processes may take.
type Place struct {
	Folder   string
	Patience time.Duration
}

// Here is what a model gives in swagwrap's own ONNX Runtime.
type Here struct {
	names   []string // of outputs
	floats  int      // the outputs from this one on are true and false
	outputs [][][]float64
}

// Here runs the examples. Without rt, which may be nil, there are no numbers to compare with.
func (s *Stored) Here(ctx context.Context, rt *ort.Runtime, m *onnxio.Model) (*Here, error) {
	r, err := s.runner(rt, m)
	if err != nil {
		return nil, err
	}
	here := &Here{names: slices.Clone(r.names), floats: len(r.names)}
	for _, o := range m.Graph.Outputs {
		if o.ElemType == onnxio.Bool {
			here.names, r.names = append(here.names, o.Name), append(r.names, o.Name+flagged)
		}
	}
	if rt == nil {
		return here, nil
	}
	withFlags, err := onnxio.WithFlags(m, flagged)
	if err != nil {
		return nil, err
	}
	here.outputs, err = r.run(ctx, withFlags, r.first(s.Examples), how{})
	return here, err
}

// VerifyIn is [Stored.Verify] in another runtime, which it also compares with ONNX Runtime here. guarded says that the model shows NaN.
func (s *Stored) VerifyIn(ctx context.Context, other *Runtime, at Place, here *Here, m *onnxio.Model,
	guarded bool) (found Elsewhere, err error) {
	session := &otherSession{Runtime: other, Place: at, model: m, names: here.names}
	r, err := s.runner(nil, m)
	if err != nil {
		return found, err
	}
	all, floats := r.first(s.Examples), here.floats
	r.names, r.other = here.names, session
	for len(r.scale) < len(r.names) {
		r.scale = append(r.scale, 1)
	}
	out, err := r.run(ctx, m, all, how{})
	if err != nil {
		return found, err
	}
	found.Difference = s.compare(r, out[:floats])
	if found.Here = -1; here.outputs != nil {
		found.Here, _, _ = r.distance(out[:floats], here.outputs)
		found.Flags, found.Others = others(out[floats:], here.outputs[floats:])
	}
	if slices.ContainsFunc(r.inputs, func(t ort.Tensor) bool { return t.F32 != nil }) && guarded {
		found.Guarded = true
		found.NaN, err = r.shows(ctx, m, all, floats)
	}
	found.Version = session.version
	return found, err
}

// others counts the elements of a, and those that b has not.
func others(a, b [][][]float64) (all, others int) {
	for k := range a {
		for i, row := range a[k] {
			for j, v := range row {
				if all++; b[k][i][j] != v {
					others++
				}
			}
		}
	}
	return all, others
}

// flagged ends the names of flags as numbers.
const flagged = "/as-number"

// shows reports whether the outputs of the first example show that an input of it is NaN, and those of others do not.
func (r *Runner) shows(ctx context.Context, m *onnxio.Model, all []int, floats int) (bool, error) {
	out, err := r.run(ctx, m, all, how{inputs: func(inputs []ort.Tensor) []ort.Tensor {
		for i := range inputs {
			if inputs[i].F32 != nil {
				inputs[i].F32[0] = float32(math.NaN())
			}
		}
		return inputs
	}})
	if err != nil {
		return false, err
	}
	for k, rows := range out {
		for i, row := range rows {
			for _, v := range row {
				switch {
				case r.fixed > 0 && i > 0: // the first of each batch
				case k < floats && math.IsNaN(v) != (i == 0):
					return false, nil
				case k >= floats && i == 0 && (v != 0) != (r.names[k] == "abstain"): // sets are empty
					return false, nil
				}
			}
		}
	}
	return true, nil
}

// otherSession runs a model in another runtime.
type otherSession struct {
	*Runtime
	Place
	model   *onnxio.Model
	names   []string
	version string
}

// Run starts the program for a batch.
func (s *otherSession) Run(ctx context.Context, inputs []ort.Tensor) (results []ort.Tensor, err error) {
	path, err := filepath.Abs(s.model.Path)
	if err != nil {
		return nil, err
	}
	var fields []string
	record := func(of ...string) { fields = append(fields, append(of, make([]string, recordFields-len(of))...)...) }
	record("model", path)
	for i, v := range s.model.FeedInputs() {
		file := filepath.Join(s.Folder, fmt.Sprintf("input-%d", i))
		shape := strings.Trim(strings.ReplaceAll(fmt.Sprint(inputs[i].Shape), " ", ","), "[]")
		record("input", v.Name, ort.DType(v.ElemType), shape, file)
		if err := os.WriteFile(file, elementsOf(inputs[i]), 0o600); err != nil {
			return nil, err
		}
	}
	for i, name := range s.names {
		place := slices.IndexFunc(s.model.Graph.Outputs, func(v onnxio.Value) bool { return v.Name == name })
		record("output", name, strconv.Itoa(place), s.output(i))
	}
	request := filepath.Join(s.Folder, "request")
	if err := os.WriteFile(request, []byte(strings.Join(fields, "\x00")+"\x00"), 0o600); err != nil {
		return nil, err
	}
	command, err := s.start(s.Folder)
	if err != nil {
		return nil, err
	}
	if err := s.finish(ctx, append(command, request)); err != nil {
		return nil, err
	}
	for i := range s.names {
		raw, err := os.ReadFile(s.output(i))
		if err != nil {
			return nil, err
		}
		t := ort.Tensor{F64: make([]float64, len(raw)/8)}
		for k := range t.F64 {
			t.F64[k] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*k:]))
		}
		results = append(results, t)
	}
	return results, nil
}

// recordFields is the number of fields of a record.
const recordFields = 5

// output returns the file of output i.
func (s *otherSession) output(i int) string {
	return filepath.Join(s.Folder, fmt.Sprintf("output-%d", i))
}

// finish runs the program to its end. If ctx or the patience ends, it ends with all processes that it began.
func (s *otherSession) finish(outer context.Context, command []string) error {
	ctx, stop := context.WithTimeout(outer, s.Patience)
	defer stop()
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interpreter may be a script that starts it
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	var messages bytes.Buffer
	c.Stderr = &messages
	printed, err := c.Output()
	exit := (*exec.ExitError)(nil)
	last := lastLine(messages.String())
	if s.absent != "" && strings.Contains(messages.String(), s.absent) {
		return &Absent{s.Runtime, s.absent}
	}
	switch {
	case outer.Err() != nil:
		return outer.Err()
	case ctx.Err() != nil:
		return &Late{s.Runtime, s.Patience}
	case err == nil:
		s.version = lastLine(string(printed))
		return nil
	case !errors.As(err, &exit):
		return &Absent{s.Runtime, err.Error()}
	case exit.ExitCode() == 69:
		return &Absent{s.Runtime, last}
	default:
		return fmt.Errorf("runtime %s: %w: %s", s.Name, err, last)
	}
}

// Close is there for a session.
func (s *otherSession) Close() error { return nil }

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndex(text, "\n")+1:])
}

// elementsOf returns the elements of an input in the layout of memory.
func elementsOf(t ort.Tensor) (raw []byte) {
	switch {
	case t.F32 != nil:
		raw = make([]byte, 4*len(t.F32))
		weights.F32.PutFloat32s(raw, t.F32)
	case t.F64 != nil:
		raw, _ = binary.Append(nil, binary.LittleEndian, t.F64)
	case t.F16 != nil:
		raw, _ = binary.Append(nil, binary.LittleEndian, t.F16)
	case t.I64 != nil:
		raw, _ = binary.Append(nil, binary.LittleEndian, t.I64)
	case t.U8 != nil:
		raw = t.U8
	default:
		raw = t.Raw
	}
	return raw
}
