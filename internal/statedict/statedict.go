// Package statedict turns members of a posterior into checkpoints of the training framework again.
//
// A posterior has the weights as one vector, and the graph's names. [Open] finds what else a checkpoint has: the names of
// PyTorch, the types, tied weights, and tensors that are not in the graph, such as counters. They come from the last checkpoint that
// the posterior was fitted to. ONNX checkpoints need no file: their names are the graph's.
//
// # Invariants
//
// A state_dict has every tensor of the user's checkpoint that can be read, under its name, with its shape. Elements
// are read, drawn and written in blocks, so that memory does not grow with the network.
package statedict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// A Form is what the checkpoints of a posterior look like.
type Form struct {
	// Folder is the folder of Hugging Face that the last checkpoint is, or "".
	Folder string
	// Copied are the names of tensors that are not in the graph, and whose floats are those of the last checkpoint. Left are
	// entries that are no tensors, and are not written.
	Copied, Left []string
	// Timm is the network that timm's train.py names in the checkpoint, or nil.
	Timm *statefile.TimmModel

	file    *statefile.File // nil for ONNX
	tensors []tensor
}

// A tensor is one of a state_dict, and where its elements come from.
type tensor struct {
	name  string
	dtype weights.DType
	shape []int64
	shard string // the file that holds it, for folders

	role       weights.Role // of its vector; Constant: its elements are stored
	offset     int64
	transposed bool
	stored     weights.Piece
	of         string // an earlier tensor with the same elements, or ""
}

// Open returns the form of the checkpoints of n's posterior. folder says where they are now; "" stands for the recorded
// place. The last checkpoint stays open as long as the posterior. Errors of checkpoints that are missing or have changed
// are as for [infer.Network.OpenAll].
func Open(ctx context.Context, n *infer.Network, folder string) (*Form, error) {
	if n.Template() == nil {
		return ofGraph(n), nil
	}
	c, path := last(n.Posterior, folder)
	models, err := n.OpenAll(ctx, []swag.Checkpoint{c}, func(swag.Checkpoint) string { return path })
	if err != nil {
		return nil, err
	}
	models[0].Release()
	f, err := statefile.Open(path)
	if err != nil {
		return nil, err
	}
	n.Posterior.OnClose(f.Close)
	sd, err := stateDict(f, c.StateDict)
	if err != nil {
		return nil, err
	}
	form := &Form{file: f, Timm: f.Timm}
	if f.Distributed {
		form.Folder = ""
	} else if statefile.Several(path) && !strings.HasSuffix(path, ".json") {
		form.Folder = path
	} else if dir := filepath.Dir(path); statefile.IsFolder(dir) && holds(dir, path) {
		form.Folder = dir
	}
	return form, form.read(sd, n.Template().Recipe(), n.Posterior.Layout)
}

// Missing returns the error of a checkpoint that is needed for the names of a posterior's weights, and is not there. It is for a
// command that has much to do before it reads the checkpoint. Other errors are left to [Open].
func Missing(posterior, folder string) error {
	p, err := swag.Open(posterior)
	if err != nil || p.Template == nil {
		return nil
	}
	defer p.Close()
	_, path := last(p, folder)
	if _, err = os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// last returns the last checkpoint that is a file of PyTorch, and its path. Others may be ONNX models.
func last(p *swag.Posterior, folder string) (c swag.Checkpoint, path string) {
	for _, c := range slices.Backward(p.Checkpoints) {
		path := infer.CheckpointPath(p, c, folder)
		if _, err := os.Stat(path); err != nil || statefile.Is(path) {
			return c, path // opening it reports the error
		}
	}
	c = p.Checkpoints[len(p.Checkpoints)-1]
	return c, infer.CheckpointPath(p, c, folder)
}

// holds reports whether the weights of the folder are in the file.
func holds(dir, path string) bool {
	f, err := statefile.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	return slices.ContainsFunc(f.Mappings(), func(m *weights.Mapping) bool { return filepath.Clean(m.Path) == filepath.Clean(path) })
}

// stateDict returns the state_dict under the key, as the fit has read it. A file that only holds one has no keys.
func stateDict(f *statefile.File, key string) (*statefile.StateDict, error) {
	if found := f.StateDicts(); len(found) == 1 && found[0].Key == "" {
		key = ""
	}
	return f.StateDict(key)
}

// read finds the place of every tensor of the state_dict.
func (form *Form) read(sd *statefile.StateDict, r *checkpoints.Recipe, l *weights.Layout) error {
	first := make(map[string]*statefile.Tensor) // by place
	for _, x := range sd.All() {
		if x.Storage.Key != x.Name && form.aliased(x) {
			continue // the file names it in its metadata only, and so will the next one
		}
		t := tensor{name: x.Name, dtype: x.DType, shape: x.Shape, shard: x.Storage.Path, stored: x.Piece}
		place := fmt.Sprint(x.Storage, x.DType, x.Shape)
		if o := first[place]; o != nil && x.Len() > 0 {
			t.of = o.Name
		} else {
			first[place] = x
		}
		into, transposed, ok := r.Fills(x.Short)
		held, known := l.Find(into)
		switch {
		case !ok && x.DType.IsFloat() && x.Len() > 1 && r.Fixed[x.Short] == "":
			form.Copied = append(form.Copied, x.Name)
		case ok && known && held.Role != weights.Constant && held.Len() == x.Len():
			t.role, t.offset, t.transposed = held.Role, held.Offset, transposed != held.Transposed
		case ok && !known:
			return &onnxio.Error{
				Path:   form.file.Path,
				Tensor: x.Name,
				What: fmt.Sprintf("fills %q, which the posterior does not have: its checkpoints are of PyTorch and of ONNX, with "+
					"other names", into),
				Hint: "fit the checkpoints of PyTorch alone",
			}
		}
		form.tensors = append(form.tensors, t)
	}
	for _, g := range sd.Ignored {
		if g.Tensor == nil {
			form.Left = append(form.Left, fmt.Sprintf("%s (%s)", g.Name, g.Why))
		}
	}
	return nil
}

// aliased reports whether a tensor's own name stands only in the metadata of a safetensors file.
func (form *Form) aliased(x *statefile.Tensor) bool {
	return form.file.Metadata(x.Storage.Path)[x.Name] == x.Storage.Key
}

// ofGraph returns the form of ONNX checkpoints: the float tensors of the graph, by its names.
func ofGraph(n *infer.Network) *Form {
	form, m := &Form{}, n.Skeleton()
	initializer := make(map[string]bool)
	for _, g := range m.Graphs() {
		for _, t := range g.Initializers {
			initializer[t.Name] = true
		}
	}
	for _, held := range n.Posterior.Layout.Tensors {
		t := tensor{
			name:       held.Name,
			dtype:      held.DType,
			shape:      held.Shape,
			role:       held.Role,
			offset:     held.Offset,
			transposed: held.Transposed,
		}
		if held.Role == weights.Constant {
			stored := m.Tensor(held.Name)
			if len(held.Shape) == 0 || !initializer[held.Name] || stored == nil {
				continue // a number of a formula
			}
			t.stored = weights.Piece{DType: held.DType, Data: m.Stretch(stored, 0, stored.Len())}
		}
		form.tensors = append(form.tensors, t)
	}
	return form
}

// ONNX reports whether the checkpoints are ONNX models.
func (form *Form) ONNX() bool { return form.file == nil }

// A Weights is a state_dict ready to be written.
type Weights struct {
	*Form
	Parameters, Statistics weights.Vector
	// As is the type of floats; weights.Invalid leaves each as in the checkpoints.
	As weights.DType
}

func (w *Weights) dtype(t tensor) weights.DType {
	if w.As == weights.Invalid || !t.dtype.IsFloat() {
		return t.dtype
	}
	return w.As
}

// vector returns the vector that has the elements of a tensor, and the tensor's place in it.
func (w *Weights) vector(t tensor) (weights.Vector, weights.Tensor, error) {
	entry := weights.Tensor{Name: t.name, Shape: t.shape, DType: w.dtype(t), Role: t.role, Offset: t.offset}
	if t.transposed {
		entry.Tied, entry.Transposed = t.name, true
	}
	switch t.role {
	case weights.Constant:
		v, err := weights.NewConcat([]weights.Piece{t.stored})
		return v, entry, err
	case weights.Parameter:
		return w.Parameters, entry, nil
	}
	return w.Statistics, entry, nil
}

func (w *Weights) entry(t tensor) statefile.Entry {
	e := statefile.Entry{Name: t.name, DType: w.dtype(t), Shape: t.shape, Of: t.of}
	e.Elements = func(out io.Writer) error {
		if t.role == weights.Constant && t.dtype == e.DType {
			return copyPiece(out, t.stored, w.release)
		}
		v, place, err := w.vector(t)
		if err == nil {
			err = weights.WriteTensor(out, place, v)
		}
		w.release()
		return err
	}
	return e
}

// copyBlock is the number of elements that are copied at a time.
const copyBlock = 1 << 16

// copyPiece writes stored elements as they are.
func copyPiece(out io.Writer, p weights.Piece, release func()) error {
	for off := int64(0); off < p.Len(); off += copyBlock {
		if _, err := out.Write(p.Stretch(off, min(copyBlock, p.Len()-off))); err != nil {
			return err
		}
	}
	release()
	return nil
}

// release gives the memory of mapped files back.
func (w *Weights) release() {
	if w.file != nil {
		w.file.Release()
	}
}

// Entries returns the tensors to write, in the order of the checkpoint.
func (w *Weights) Entries() (entries []statefile.Entry) {
	for _, t := range w.tensors {
		entries = append(entries, w.entry(t))
	}
	return entries
}

// Write writes all tensors into one file, in the given format. origin is as for [statefile.Write].
func (w *Weights) Write(out File, format Format, name, origin string) error {
	return w.Guarded(func() error {
		switch format {
		case Safetensors:
			return statefile.WriteSafetensors(out, w.Entries(), w.metadata(), origin)
		case NPZ:
			return writeNPZ(out, w.Entries())
		}
		return statefile.Write(out, strings.TrimSuffix(name, filepath.Ext(name)), w.whole(), origin)
	})
}

// Guarded runs f, which reads mapped files.
func (w *Weights) Guarded(f func() error) error { return weights.Guarded(f)() }

// whole returns the entries with those that a safetensors file only names in its metadata. A file of torch.save has all names.
func (w *Weights) whole() []statefile.Entry {
	entries := w.Entries()
	byName := make(map[string]statefile.Entry, len(entries))
	for _, e := range entries {
		byName[e.Name] = e
	}
	for _, alias := range sortedKeys(w.metadata()) {
		of, known := byName[w.metadata()[alias]]
		if _, twice := byName[alias]; !known || twice {
			continue
		}
		e := of
		e.Name, e.Of = alias, of.Name
		if of.Of != "" {
			e.Of = of.Of
		}
		entries, byName[alias] = append(entries, e), e
	}
	return entries
}

// metadata returns the metadata of the checkpoint, if it is one safetensors file.
func (w *Weights) metadata() map[string]string {
	if w.file == nil {
		return nil
	}
	var all map[string]string
	for _, m := range w.file.Mappings() {
		for key, value := range w.file.Metadata(m.Path) {
			if all == nil {
				all = make(map[string]string)
			}
			all[key] = value
		}
	}
	return all
}

// Origin returns what a file says of its origin, from the metadata of an exported model.
func Origin(metadata map[string]string) (string, error) {
	js, err := json.Marshal(metadata)
	return string(js), err
}

// ParseOrigin is the inverse of [Origin].
func ParseOrigin(origin string) (metadata map[string]string, err error) {
	err = json.Unmarshal([]byte(origin), &metadata)
	return metadata, err
}

// ErrNoFolder says that the checkpoints are no folders of Hugging Face.
var ErrNoFolder = errors.New("the checkpoints are no folders of Hugging Face")
