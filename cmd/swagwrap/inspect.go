package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

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

func (a *app) inspectCommand() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "say what files are, what they were made from, and what to do with them",
		ArgsUsage: "FILE...",
		Description: `Says what files are, what they were made from, how good they are, and which command reads them. It knows posteriors,
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
		Flags: flags.Join([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "print JSON instead of text"},
		}, flags.TemplateFlags),
		Action: with(readInspect, a.inspect),
	}
}

// inspectOptions are the values of inspect's command line.
type inspectOptions struct {
	files  []string
	source open.SourceOptions
	json   bool
}

func readInspect(c *cli.Context) (inspectOptions, error) {
	return inspectOptions{files: c.Args().Slice(), source: flags.ReadSource(c), json: c.Bool("json")}, nil
}

// inspect prints without a check for failed writes, because [console.Stdout] remembers the first one.
func (a *app) inspect(ctx context.Context, o inspectOptions) error {
	template := o.source.Template != ""
	if done, err := describe.Files(ctx, a.Env, describe.Options{JSON: o.json, Template: template}, o.files); done || err != nil {
		return err
	}
	paths, err := a.Models(o.files, template)
	if err != nil {
		return err
	}
	source, err := a.OpenSource(o.source, nil)
	if err != nil {
		return err
	}
	defer source.Close()
	if source.Template == nil && slices.ContainsFunc(paths, statefile.Is) {
		return a.inspectTorch(o, paths)
	}
	models, err := source.Open(paths)
	if err != nil {
		return err
	}
	defer open.CloseModels(models)
	d, err := diagnosis.Of(ctx, models)
	if err != nil {
		return console.BadInput(err)
	}
	d.AllTensors = a.Verbose
	if o.json {
		err = console.WriteJSON(a.Stdout, d)
	} else if err = a.writeTemplate(paths, source); err == nil {
		err = d.WriteText(a.Stdout, a.Screen())
	}
	if err != nil {
		return err
	}
	if !d.Usable {
		return console.BadInput(errors.New(d.Verdict), d.Hints...)
	}
	fit := []string{"swagwrap", "fit", "-o", "posterior.safetensors"}
	if template {
		fit = append(fit, "--template", o.source.Template)
	}
	if slices.ContainsFunc(d.Hints, func(hint string) bool { return strings.Contains(hint, setting.Task.String()) }) {
		fit = append(fit, setting.Task.String(), "TASK")
	}
	if d.NeedsOutput {
		fit = append(fit, setting.OutputName.String(), "NAME")
	}
	a.Next(console.Shell(append(fit, o.named()...)...))
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
func (a *app) inspectTorch(o inspectOptions, paths []string) error {
	files, err := describe.Torch(paths)
	if err != nil {
		return err
	}
	if o.json {
		return console.WriteJSON(a.Stdout, files)
	}
	describe.WriteTorch(a.Stdout, a.Screen(), files, len(files) == 1)
	var legacy []string
	for _, f := range files {
		if f.Legacy {
			legacy = append(legacy, f.Path)
		}
	}
	if len(legacy) > 0 {
		text.Line(a.Stdout, "%s", checkpoints.Legacy(legacy))
	}
	fmt.Fprintln(a.Stdout)
	text.Line(a.Stdout, "Whether they are usable depends on the network. Export it once as ONNX.")
	a.Next(console.Shell(append([]string{"swagwrap", "inspect", "--template", "model.onnx"}, o.named()...)...))
	return nil
}

// writeTemplate prints the content of PyTorch checkpoints, and the parts that are not in the template.
func (a *app) writeTemplate(paths []string, source *open.Source) error {
	files, err := describe.Torch(slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return !statefile.Is(path) }))
	if err != nil || len(files) == 0 {
		return err
	}
	describe.WriteTorch(a.Stdout, a.Screen(), files, false)
	notes, _ := source.Remarks()
	for _, note := range append(notes, "") {
		text.Line(a.Stdout, "%s", note)
	}
	return nil
}
