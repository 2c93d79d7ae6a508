package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/describe"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

func inspectCommand(a *app) *command {
	o := &inspectOptions{app: a}
	return &command{
		name:  "inspect",
		usage: "say what files are, what they were made from, and what to do with them",
		args:  "FILE...",
		description: `Says what files are, what they were made from, how good they are, and which command reads them. It knows posteriors,
ensembles, parts, stores, settings, calibrations, predictions, data and exported models.

For one checkpoint it prints inputs and outputs, producer, tensors with their roles and the reasons, and batch-norm layers. For
several it prints which tensors differ, how far each checkpoint moved from the one before, duplicates, and values that no training
leaves. PyTorch's files need --template for that. The last line is the verdict: usable, usable with warnings, or not usable and
why. The exit code is then 65.

   swagwrap inspect ensemble.safetensors
   swagwrap inspect val.npz
   swagwrap inspect checkpoints/epoch-01.onnx
   swagwrap inspect checkpoints/*.onnx
   swagwrap inspect --template model.onnx checkpoints/*.pt`,
		Table: flags.Join(flags.Table{
			flags.Bool(flags.Row{Name: "json", Usage: "print JSON instead of text"}, &o.json),
		}, flags.Template(&o.source)),
		run: func(ctx context.Context, args []string) error {
			o.files = args
			return o.inspect(ctx)
		},
	}
}

// inspectOptions are the values of inspect's command line.
type inspectOptions struct {
	*app
	files  []string
	source open.SourceOptions
	json   bool
}

// inspect prints without a check for failed writes, because [console.Stdout] remembers the first one.
func (o *inspectOptions) inspect(ctx context.Context) error {
	graph := open.Graph(o.source.Template)
	if done, err := describe.Files(ctx, o.Env, describe.Options{JSON: o.json, Template: graph}, o.files); done || err != nil {
		return err
	}
	paths, err := o.Models(o.files, graph)
	if err != nil {
		return err
	}
	source, err := o.OpenSource(o.source, nil)
	if err != nil {
		return err
	}
	defer source.Close()
	if source.Template == nil && slices.ContainsFunc(paths, statefile.Is) {
		return o.inspectTorch(paths)
	}
	models, err := source.Open(paths)
	if err != nil {
		return err
	}
	defer open.CloseModels(models)
	d, err := diagnosis.Diagnose(ctx, models)
	if err != nil {
		return console.BadInput(err)
	}
	if d.Usable {
		if err := open.Takes(ctx, o.Opener, open.RuntimeOptions{}, models[len(models)-1]); err != nil {
			d.Reject(err)
		}
	}
	d.AllTensors = o.Verbose
	if o.json {
		err = console.WriteJSON(o.Stdout, d)
	} else if err = o.writeTemplate(paths, source); err == nil {
		err = d.WriteText(o.Stdout, o.Screen())
	}
	if err != nil {
		return err
	}
	if !d.Usable {
		return console.BadInput(errors.New(d.Verdict), d.Hints...)
	}
	fit := []string{"swagwrap", "fit", "-o", "posterior.safetensors"}
	if graph != "" {
		fit = append(fit, "--template", o.source.Template)
	}
	if slices.ContainsFunc(d.Hints, func(hint string) bool { return strings.Contains(hint, setting.Task.String()) }) {
		fit = append(fit, setting.Task.String(), "TASK")
	}
	if d.NeedsOutput {
		fit = append(fit, setting.OutputName.String(), "NAME")
	}
	o.Next(console.Shell(append(fit, o.named()...)...))
	return nil
}

// named returns the arguments for another command, or a word for them if there are many.
func (o inspectOptions) named() []string {
	if len(o.files) > 3 {
		return []string{"CHECKPOINTS"}
	}
	return o.files
}

// inspectTorch prints the content of PyTorch checkpoints. Without the graph it cannot tell whether a posterior can be
// built from them.
func (o *inspectOptions) inspectTorch(paths []string) error {
	files, err := describe.Torch(paths)
	if err != nil {
		return err
	}
	if o.json {
		return console.WriteJSON(o.Stdout, files)
	}
	describe.WriteTorch(o.Stdout, o.Screen(), files, len(files) == 1)
	var legacy []string
	for _, f := range files {
		if f.Legacy {
			legacy = append(legacy, f.Path)
		}
	}
	if len(legacy) > 0 {
		text.Line(o.Stdout, "%s", checkpoints.Legacy(legacy))
	}
	fmt.Fprintln(o.Stdout)
	text.Line(o.Stdout, "Whether they are usable depends on the network. Export it once as ONNX.")
	o.Next(console.Shell(append([]string{"swagwrap", "inspect", "--template", "model.onnx"}, o.named()...)...))
	return nil
}

// writeTemplate prints the content of PyTorch checkpoints, and the parts that are not in the template.
func (o *inspectOptions) writeTemplate(paths []string, source *open.Source) error {
	files, err := describe.Torch(slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !statefile.Is(path) }))
	if err != nil || len(files) == 0 {
		return err
	}
	describe.WriteTorch(o.Stdout, o.Screen(), files, false)
	notes, _ := source.Remarks(false)
	for _, note := range append(notes, "") {
		text.Line(o.Stdout, "%s", note)
	}
	return nil
}
