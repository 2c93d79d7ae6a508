package main

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
)

// saveBatch writes the file of --save-batch. It appears together with the result.
func saveBatch(c *cli.Context, job *scoreJob, n *infer.Network) error {
	path := c.String("save-batch")
	if path == "" {
		return nil
	}
	if len(dataset.Fields(job.data)) > 1 && filepath.Ext(path) != ".npz" {
		return flags.Usagef("", "--save-batch %s: the network takes %d inputs, want the name of an .npz file", path, len(n.Inputs))
	}
	size := c.Int("batch-size")
	if size == 0 {
		size = infer.DefaultBatchSize
	}
	out, err := flags.CreateOutput(path, c.Bool("force") || c.Bool("resume"))
	if err != nil {
		return err
	}
	job.batch = out
	if err := dataset.WriteBatch(out, job.data, size, n.TakesBytes(), skipErrors(c)); err != nil {
		return blame(err)
	}
	return nil
}
