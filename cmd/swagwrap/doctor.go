package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/tempfile"
)

func doctorCommand(a *app) *command {
	o, provider := &doctorOptions{app: a}, ""
	library, providers := flags.Library(&o.library), flags.Provider(&provider)
	return &command{
		name:  "doctor",
		usage: "show versions, the machine and its ONNX Runtime, and run a tiny network; or verify an exported model",
		args:  "[MODEL]",
		description: `Prints what to paste into an issue: versions, which ONNX Runtime was found and how, what it can compute on, the
processor's features, the cache folder, and whether a tiny network gives the right numbers. The network also runs on each other
provider that setup fetched. Your home folder is written as ~. The exit code is 69 if no ONNX Runtime can be used.

   swagwrap doctor

With an exported model it runs the examples that the model has inside, and compares the outputs with those of the export. A model that
gives others, such as a quantised one, ends with exit code 65.

   swagwrap doctor ensemble.onnx

--runtime runs them in another runtime, if it is installed: onnxruntime, openvino and tract of Python, onnxruntime-node in the folder
where you are, or ONNX Runtime for Java on CLASSPATH. It prints version, largest difference, sets that differ, and whether NaN in an
input shows.

   swagwrap doctor --runtime openvino ensemble.onnx`,
		Table: flags.Table{
			flags.Bool(flags.Row{Name: "json", Usage: "print JSON instead of text, with paths in full"}, &o.json),
			flags.OneOf(flags.Row{
				Name: "runtime",
				Usage: "verify MODEL in the runtime `NAME`: onnxruntime, openvino or tract of Python, node, java; all is each that is " +
					"installed",
				Preset: "swagwrap's own",
			}, &o.runtime, open.RuntimeNames()...),
			library, providers,
		},
		run: func(ctx context.Context, args []string) error {
			o.provider = flags.Fetched(provider)
			how := open.RuntimeOptions{Library: o.library, Provider: o.provider}
			switch {
			case len(args) == 0 && o.runtime != "":
				return console.Usagef("swagwrap doctor --runtime "+o.runtime+" ensemble.onnx", "--runtime verifies an exported MODEL")
			case len(args) == 0:
				return o.doctor(ctx)
			}
			words := flags.Table{library, providers}.Words(runtimeFlags...)
			reply, err := outputsRequest{Name: args[0], Verify: true}.elsewhere(ctx, words, args[0])
			switch {
			case err != nil:
				return err
			case o.runtime != "":
				folder, err := tempfile.Folder()
				if err != nil {
					return console.BadOutput(err)
				}
				defer tempfile.Remove(folder)
				return open.VerifyModelIn(ctx, o.Opener, how, args[0], o.runtime, folder)
			case reply == nil: // for an error of the right kind
				return open.VerifyModel(ctx, o.Opener, how, args[0])
			}
			for line := range strings.Lines(reply.messages) {
				o.Logf("%s", strings.TrimSuffix(line, "\n"))
			}
			return nil
		},
	}
}

// doctorOptions are the values of doctor's command line.
type doctorOptions struct {
	*app
	provider ort.Provider
	library  string // of ONNX Runtime, or ""
	runtime  string // another one, or ""
	json     bool
}

func (o *doctorOptions) doctor(ctx context.Context) error {
	found, err := ort.Check(ctx, o.provider, o.library)
	for i := range found.Others {
		if other := &found.Others[i]; o.provider.Name == ort.CPU {
			other.Checked = checkOther(ctx, ort.Provider{Name: other.Name})
		}
	}
	o.printCheckup(found)
	return err
}

// checkOther describes the Checkup of another provider, if that is installed. It comes from another process, because a
// process holds one ONNX Runtime.
func checkOther(ctx context.Context, p ort.Provider) string {
	if _, err := p.Find(""); err != nil {
		return ""
	}
	var found ort.Checkup
	program, err := os.Executable()
	if err == nil {
		child := exec.CommandContext(ctx, program, "doctor", "--json", "--provider", p.Name)
		child.Args[0] = os.Args[0]
		out, _ := child.Output()
		err = json.Unmarshal(out, &found)
	}
	if err != nil {
		return err.Error()
	}
	return join(": ", found.Device, cmp.Or(found.Problem, found.Run))
}

func (o *doctorOptions) printCheckup(found ort.Checkup) {
	if o.json {
		console.WriteJSON(o.Stdout, struct {
			Swagwrap string `json:"swagwrap"`
			ort.Checkup
		}{console.Version(), found})
		return
	}
	type line struct{ name, value string }
	lines := []line{
		{"swagwrap", fmt.Sprintf("%s, %s, %s", console.Version(), found.Go, found.Platform)},
		{"system", join(", ", found.System, found.CLibrary)},
		{"processor", join(", ", found.Processor, fmt.Sprintf("%d in use", found.Cores), strings.Join(found.Features, " "))},
		{"memory", found.Memory},
		{"ONNX Runtime", found.Version},
		{"library", join(", by ", found.Library, found.Found)},
		{"telemetry", telemetry(found)},
		{"providers", strings.Join(found.Providers, " ")},
		{"float16", float16(o.provider, found)},
		{"cache", found.Cache},
		{"temporary", found.Temp},
		{"environment", strings.Join(found.Environment, " ")},
		{"device", join("; ", found.Device, o.provider.Untested())},
		{"tiny network", found.Run},
		{"problem", found.Problem},
	}
	for _, o := range found.Others {
		lines = slices.Insert(lines, len(lines)-1, line{o.Name, join("; ", o.Cache, o.Checked, ort.Provider{Name: o.Name}.Untested())})
	}
	home, _ := os.UserHomeDir()
	for _, l := range lines {
		if l.value == "" {
			continue
		}
		if len(home) > 1 {
			l.value = strings.ReplaceAll(l.value, home+"/", "~/")
		}
		text.Line(o.Stdout, "%-13s %s", l.name, l.value)
	}
}

// telemetry says who switches off the usage reporting of a library from the Python package onnxruntime.
func telemetry(found ort.Checkup) string {
	if !strings.Contains(filepath.ToSlash(found.Library), "/onnxruntime/capi/") {
		return ""
	}
	return "off in swagwrap. For other programs with this library: ORT_DISABLE_TELEMETRY=1, or in Python import swagwrap before onnxruntime"
}

// float16 says what the processor does not show of a network in float16.
func float16(p ort.Provider, found ort.Checkup) string {
	if p.Name != ort.CPU || found.Run == "" {
		return ""
	}
	return "the processor keeps float32 between the nodes of a network in float16: a value above 65504 overflows only on a GPU"
}

func join(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), sep)
}
