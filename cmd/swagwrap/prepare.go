package main

import (
	"cmp"
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
)

// preparedBatch is the default number of examples in a batch.
const preparedBatch = 64

func prepareCommand(a *app) *command {
	o := &prepareOptions{app: a}
	return &command{
		name:  "prepare",
		usage: "write pictures or a table as an exported model takes them",
		args:  "MODEL.onnx DATA...",
		description: `Reads data as score does, and writes what the model takes: pixels that are resized, cropped and normalised, or the columns of
a table in the model's order. So any runtime gives the rows of score. No network runs. Labels are left out.

   swagwrap prepare -o batch.npy ensemble.onnx images/

The output is an array with a row for each example. For several inputs name it .npz. Standard output, -o -, gets batches while
they are made, for programs that read from a pipe. A batch is a .npy array with the examples' names, and one for each input.`,
		Table: o.rows(),
		run: func(_ context.Context, args []string) error {
			o.model, o.data = args[0], args[1:]
			return o.prepareInputs()
		},
	}
}

// prepareOptions are the values of prepare's command line.
type prepareOptions struct {
	*app
	model  string
	data   []string
	output flags.OutputOptions
	read   open.DataOptions
	batch  int
	beside string
}

func (o *prepareOptions) rows() flags.Table {
	return flags.Join(flags.Output(&o.output), flags.Prepared(&o.read), flags.Table{
		flags.BatchSize(&o.batch, strconv.Itoa(preparedBatch)+", of -o -"),
		flags.Memory(&o.read.Memory),
		// This is for programs that have labels beside a folder of pictures, such as score of the Python package.
		flags.Text(flags.Row{
			Name:  "labels",
			Usage: "labels `NAME` belong to the rows by their place: refuse files whose order is not known. Labels are not read",
		}, &o.beside),
	})
}

func (o *prepareOptions) prepareInputs() error {
	stream := file.IsStdout(o.output.Path)
	ext := strings.ToLower(filepath.Ext(o.output.Path))
	switch {
	case !stream && ext != ".npy" && ext != ".npz":
		return console.Usagef("say where the arrays go: -o batch.npy, or -o - for standard output",
			"%s: want a name that ends in .npy or .npz", o.output.Path)
	case stream && o.Stdout.Terminal():
		return console.Usagef("name a file: -o batch.npy", "standard output is a terminal, and arrays are not text")
	}
	data, asBytes, err := open.OpenForModel(o.read, o.model, o.data, &o.Sideways)
	if err != nil {
		return err
	}
	if o.beside != "" {
		if err := dataset.ByPlace(data, o.beside); err != nil {
			return open.WrongGroups(err)
		}
	}
	if stream {
		if err := o.Stdout.Ready(); err != nil {
			return err
		}
		o.Streamed = true
		return console.BadInput(dataset.WriteStream(o.Stdout, data, cmp.Or(o.batch, preparedBatch), asBytes))
	}
	if several := len(dataset.Fields(data)) > 1; several != (ext == ".npz") {
		want := ".npy"
		if several {
			want = ".npz"
		}
		return console.Usagef("", "%s: the model takes %s, want the name of a %s file", o.output.Path,
			report.Plural(max(1, len(dataset.Fields(data))), "input"), want)
	}
	out, err := createBatch(o.output.Path, o.output.Force)
	if err != nil {
		return err
	}
	defer out.Abort()
	if err := dataset.WriteBatch(out, data, data.Len(), asBytes, false); err != nil {
		return console.BadInput(err)
	}
	if err := console.Commit(out); err != nil {
		return err
	}
	o.Logf("%s: %s", o.output.Path, report.Plural(data.Len(), "example"))
	return nil
}
