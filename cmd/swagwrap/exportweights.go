package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/statedict"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// exportWeights writes SWA or a member as weights of the framework that trained the checkpoints.
func (o *exportOptions) exportWeights(ctx context.Context, format statedict.Format) error {
	if o.of == "" {
		return console.Usagef("swagwrap export --help shows an example", "%s: weights are those of a POSTERIOR or ENSEMBLE", o.output.Path)
	}
	if err := o.Refuse("single", "", "--* is for one ONNX model of an ENSEMBLE: -o NAME.onnx"); err != nil {
		return err
	}
	if err := o.Refuse("files of weights", "", "--* is for ONNX models: -o NAME.onnx"); err != nil {
		return err
	}
	if err := o.Refuse("weights", "the checkpoint's own file has its weights",
		"--* is for ONNX models: -o NAME.onnx"); err != nil {
		return err
	}
	out, err := o.createWeights(format)
	if err != nil {
		return err
	}
	defer out.abort()
	if kind.Detect(o.of) == kind.Posterior {
		if err := statedict.Missing(o.of, o.folder); err != nil {
			return missingCheckpoint(err, o.of)
		}
	} else if err := o.oneMember(); err != nil {
		return err
	}
	n, parameters, statistics, err := o.network(ctx)
	if n != nil {
		defer n.Posterior.Close()
	}
	if err != nil {
		return err
	}
	form, err := o.writeWeights(ctx, n, parameters, statistics, out)
	if err != nil {
		return err
	}
	if err := out.commit(); err != nil {
		return err
	}
	o.tellForm(form, out)
	if filepath.Ext(out.path) != ".npz" { // inspect takes its arrays for predictions
		o.Next(console.Shell("swagwrap", "inspect", out.path))
	}
	return nil
}

// writeWeights writes the weights of a network, and leaves it to the caller to commit them.
func (o *exportOptions) writeWeights(ctx context.Context, n *infer.Network, parameters, statistics weights.Vector,
	out *weightsOutput) (*statedict.Form, error) {
	form, err := statedict.Open(ctx, n, o.folder)
	if err != nil {
		return nil, missingCheckpoint(err, n.Posterior.Path)
	}
	w := &statedict.Weights{Form: form, Parameters: parameters, Statistics: statistics, As: o.dtype}
	if !w.Representable(out.format) {
		return nil, console.Usagef("--dtype f32 holds them without loss", "%s: NumPy has no bfloat16", out.path)
	}
	origin, apply, err := o.tellOrigin(n)
	if err == nil {
		err = o.tellRounding(ctx, w, n.Posterior, !o.member.Set)
	}
	if err == nil {
		err = out.write(w, origin)
	}
	if errors.Is(err, statedict.ErrNoFolder) {
		return nil, console.Usagef("-o NAME.safetensors or NAME.pt writes one file", "%s: %v", out.path, err)
	}
	if err == nil && apply != nil {
		err = out.calibration(apply, n)
	}
	return form, console.BadInput(err) // files being written have their own error
}

// oneMember sets --member of an ensemble. An ensemble of one network needs no number.
func (o *exportOptions) oneMember() error {
	if o.member.Set {
		return nil
	}
	e, err := o.OpenEnsemble(o.of)
	if err != nil {
		return err
	}
	if e.Members() > 1 {
		return console.Usagef("--member 0 writes the first one. The average of weights, SWA, is an export of the posterior",
			"%s: weights are those of one network, and %s has %s", o.output.Path, o.of, report.Plural(e.Members(), "member"))
	}
	o.member = open.Given[int]{Value: 0, Set: true}
	return nil
}

// missingCheckpoint is the error of a checkpoint that does not tell the names.
func missingCheckpoint(err error, posterior string) error {
	if errors.Is(err, os.ErrNotExist) {
		return console.BadInput(err, "the last checkpoint tells the names of the weights: --checkpoints FOLDER says where the "+
			"checkpoints of "+posterior+" are now")
	}
	return open.WrongCheckpoints(err)
}

// tellOrigin returns what the file says of itself, and the calibration that goes with the weights, or nil.
func (o *exportOptions) tellOrigin(n *infer.Network) (origin string, apply *task.Calibration, err error) {
	is, from, apply, err := o.origin(n.Posterior)
	if err != nil {
		return "", nil, err
	}
	metadata, err := ensemble.ModelMetadata(is, n.Posterior.Card, from, apply)
	if err != nil {
		return "", nil, err
	}
	origin, err = statedict.Origin(metadata)
	return origin, apply, err
}

// tellRounding says what a 16-bit type did to the member.
func (o *exportOptions) tellRounding(ctx context.Context, w *statedict.Weights, p *swag.Posterior, swa bool) error {
	s, err := open.Sampler(p, swag.SampleOptions{})
	if err != nil {
		return err
	}
	var r *statedict.Rounding
	err = weights.Guarded(func() (err error) {
		r, err = w.Rounding(p, s.Vector(ctx, 0), swa)
		return err
	})()
	if err != nil || r == nil {
		return err
	}
	share := func(a, b float64) string { return report.Percent(a/b, 2) }
	switch {
	case r.Distance == 0:
		o.Logf("rounding to %v moves the weights by %s of their size", r.As, share(r.Error, r.Size))
	case swa:
		o.Logf("rounding to %v moves SWA by %s of the spread of the checkpoints", r.As, share(r.Error, r.Distance))
	case len(r.Lost) == 0:
		o.Logf("rounding to %v moves the member by %s of its distance from SWA", r.As, share(r.Error, r.Distance))
	default:
		o.Warnf("rounding to %v moves the member by %s of its distance from SWA, and by more than half of it in %d of %d tensors (%s). "+
			"%s of its weights are then those of SWA: --dtype f32 keeps the member",
			r.As, share(r.Error, r.Distance), len(r.Lost), r.Tensors, first(r.Lost), share(r.Same, 1))
	}
	return nil
}

// first lists some names.
func first(names []string) string {
	const most = 3
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// tellForm says what is in the file besides the weights, and what is not.
func (o *exportOptions) tellForm(form *statedict.Form, out *weightsOutput) {
	if len(form.Copied) > 0 {
		o.Logf("not in the graph, and as the last checkpoint has them: %s", first(form.Copied))
	}
	if len(form.Left) > 0 {
		o.Warnf("no tensors, and left out: %s", first(form.Left))
	}
	if form.ONNX() {
		o.Logf("%s has the names of the ONNX checkpoints", out.path)
	}
}

// weightsOutput is the file or the folder that is written.
type weightsOutput struct {
	*console.Env
	path   string
	format statedict.Format
	force  bool
	file   *console.Output // of a file
	json   *console.Output // the calibration next to it, or nil
	folder *console.Folder // of a folder
}

func (o *exportOptions) createWeights(format statedict.Format) (out *weightsOutput, err error) {
	out = &weightsOutput{Env: o.Env, path: o.output.Path, format: format, force: o.output.Force}
	if format == statedict.Folder {
		out.folder, err = console.CreateFolder(out.path, out.force)
		return out, err
	}
	out.file, err = o.CreateResult(out.path, out.force, false)
	return out, err
}

// write writes the weights.
func (out *weightsOutput) write(w *statedict.Weights, origin string) error {
	if out.format != statedict.Folder {
		b := newBuffered(out.file)
		if err := w.Write(b, out.format, filepath.Base(out.path), origin); err != nil {
			return err
		}
		return console.BadOutput(b.Flush())
	}
	if w.Form.Folder != "" {
		_, leftOut, err := w.Others()
		if err != nil {
			return console.BadInput(err)
		}
		if leftOut != nil {
			out.Logf("%s: only regular files within the folder are copied. Left out: %s", w.Form.Folder, strings.Join(leftOut, ", "))
		}
	}
	return w.WriteFolder(out.inFolder, origin)
}

// inFolder makes a file of the folder.
func (out *weightsOutput) inFolder(name string, write func(statedict.File) error) error {
	f, err := os.OpenFile(filepath.Join(out.folder.Work, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return console.BadOutput(err)
	}
	b := newBuffered(writing{f})
	err = write(b)
	return errors.Join(err, console.BadOutput(errors.Join(b.Flush(), f.Sync(), f.Close())))
}

// writing marks the errors of a file that is written.
type writing struct{ *os.File }

func (w writing) Write(p []byte) (int, error) {
	n, err := w.File.Write(p)
	return n, console.BadOutput(err)
}

func (w writing) WriteAt(p []byte, off int64) (int, error) {
	n, err := w.File.WriteAt(p, off)
	return n, console.BadOutput(err)
}

// buffered gathers small writes that follow each other. Others pass.
type buffered struct {
	*bufio.Writer
	statedict.File
}

func newBuffered(f statedict.File) buffered { return buffered{bufio.NewWriterSize(f, 1<<20), f} }

func (b buffered) Write(p []byte) (int, error)              { return b.Writer.Write(p) }
func (b buffered) WriteAt(p []byte, off int64) (int, error) { return b.File.WriteAt(p, off) }

// calibration writes the calibration of the scores into a JSON file next to the weights.
func (out *weightsOutput) calibration(c *task.Calibration, n *infer.Network) error {
	v := statedict.Applied(c, n, console.Producer(), filepath.Base(out.path))
	if out.folder != nil {
		return out.inFolder("calibration.json", func(f statedict.File) error { return console.WriteJSON(f, v) })
	}
	path := strings.TrimSuffix(out.path, filepath.Ext(out.path)) + ".calibration.json"
	var err error
	if out.json, err = out.CreateResult(path, out.force, true); err != nil {
		return err
	}
	if err := console.WriteJSON(out.json, v); err != nil {
		return console.BadOutput(err)
	}
	out.Logf("%s has the calibration of the scores, %s, and the PyTorch that applies it", path, c)
	return nil
}

func (out *weightsOutput) commit() error {
	if out.folder != nil {
		return out.folder.Commit()
	}
	return console.Commit(out.json, out.file)
}

func (out *weightsOutput) abort() {
	if out.folder != nil {
		out.folder.Abort()
		return
	}
	out.file.Abort()
	out.json.Abort()
}
