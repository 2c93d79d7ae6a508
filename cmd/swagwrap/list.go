package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/open"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset/filelist"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/word"
)

func listCommand(a *app) *command {
	o := &listOptions{app: a}
	return &command{
		name:  "list",
		usage: "list images once for all parts of a job array",
		args:  "IMAGES...",
		description: `Looks at folders, tars, lists, files and patterns for these. Writes a row for each image: the file and place of its bytes, their
number, its name in predictions, and its label. Every command takes such a listing instead of the images, and gives the same
rows. No command looks at a file again before it reads an image from it. If the file then has another size, the image cannot be
read. score --part reads only its own rows, and opens only its own tars.

   swagwrap list -o files.parquet images/
   swagwrap score --part 3/50 -o predictions.csv ensemble.safetensors files.parquet

Relative paths are relative to the folder of the listing, so both can move together.
An input pipe:COMMAND is a shell command that writes a tar. It runs once now, and once in each part that has some of its images, with
score --allow pipe:

   swagwrap list -o files.parquet 'pipe:aws s3 cp s3://bucket/shard-{000..099}.tar -'`,
		Table: flags.Join(flags.Output(&o.output), flags.Table{
			onError(&o.skipErrors, "what"),
			flags.Parsed(flags.Row{Name: "labels", Usage: "none ignores labels in tars"}, &o.unlabelled,
				func(s string) (bool, error) { return true, word.Check(s, "none") }),
			flags.LabelColumn(&o.named.Labels),
			flags.PathColumn(&o.named.Path),
			flags.FileOrder(&o.order, "as at fit, or a question where it matters"),
		}),
		run: func(ctx context.Context, args []string) error {
			o.images = args
			return o.list(ctx)
		},
	}
}

// listOptions are the values of list's command line.
type listOptions struct {
	*app
	images     []string
	output     flags.OutputOptions
	unlabelled bool
	named      listing.Columns
	order      fileorder.Order
	skipErrors bool
}

func (o *listOptions) list(ctx context.Context) error {
	output := o.output.Path
	if !file.IsStdout(output) && !strings.EqualFold(filepath.Ext(output), filelist.Extension) {
		return console.Usagef("say where the listing goes: -o files.parquet", "%s: want a name that ends in %s", output, filelist.Extension)
	}
	out, err := o.CreateResult(output, o.output.Force, true)
	if err != nil {
		return err
	}
	defer out.Abort()
	seen, err := seenFrom(output)
	if err != nil {
		return err
	}
	head, rows, failed, err := listing.List(o.images, listing.ListOptions{
		Unlabelled: o.unlabelled,
		Pipes:      ctx,
		Path:       seen,
		Columns:    o.named,
		Order:      o.order,
		Note:       func(sentence string) { o.Logf("%s", sentence) },
	})
	switch {
	case errors.Is(err, listing.ErrInside):
		return console.BadInput(err, "other commands read the Parquet file itself: swagwrap score -o out.csv ensemble.safetensors "+
			"FILE.parquet", "a job reads its share with score --part I/N, which needs no listing")
	case err != nil:
		return open.WrongData(err, o.images...)
	case failed != nil && !o.skipErrors:
		return console.BadInput(failed, "--on-error skip lists it with the error")
	case ctx.Err() != nil:
		return ctx.Err()
	}
	head.Producer = console.Producer()
	if err := filelist.Write(out, head, rows); err != nil {
		return console.BadOutput(err)
	}
	if err := out.Commit(); err != nil {
		return err
	}
	o.Logf("%s: %s", output, report.Plural(head.Rows, "image"))
	if failed != nil {
		o.Warnf("the first error: %v", failed)
		return console.Incomplete("%s: %s of %s rows have an error", output, report.Thousands(head.Failed), report.Thousands(head.Rows))
	}
	return nil
}

// seenFrom returns a function that converts a relative path to a path from the folder of a listing. [file.RelativeTo]
// is too slow for millions of paths.
func seenFrom(listing string) (func(path string) string, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	from, err := filepath.Abs(filepath.Dir(listing))
	if err != nil {
		return nil, err
	}
	return func(path string) string {
		if filepath.IsAbs(path) {
			return filepath.ToSlash(path)
		}
		path = filepath.Join(here, path)
		if rel, err := filepath.Rel(from, path); err == nil && !file.IsStdout(listing) {
			path = rel
		}
		return filepath.ToSlash(path)
	}, nil
}
