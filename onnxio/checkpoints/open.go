package checkpoints

import (
	"errors"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/torch"
)

// Open opens checkpoints: ONNX files as they are, and PyTorch's read against t,
// which may be nil where there are none. The caller closes them, and after them the
// model of t. Errors are of type [*onnxio.Error], or of the system or package
// weights.
func Open(paths []string, t *Template) (models []*onnxio.Model, err error) {
	err = weights.Guarded(func() error {
		models, err = openAll(paths, t)
		return err
	})()
	return models, err
}

func openAll(paths []string, t *Template) (models []*onnxio.Model, err error) {
	states := make([]*state, len(paths))
	models = make([]*onnxio.Model, len(paths))
	defer func() {
		if err == nil {
			return
		}
		for i := range paths {
			if models[i] != nil {
				models[i].Close()
			} else if states[i] != nil {
				states[i].file.Close()
			}
		}
		models = nil
	}()
	var all []*state
	for i, path := range paths {
		switch {
		case !torch.Is(path):
			models[i], err = onnxio.Open(path)
		case t == nil:
			err = &onnxio.Error{Path: path, What: "a checkpoint of PyTorch, which has weights and no graph",
				Hint: "export the network once, and say where the graph is: --template model.onnx (see docs/exporting.md)"}
		default:
			if states[i], err = openState(path, t.StateDict); err == nil {
				all = append(all, states[i])
			}
		}
		if err != nil {
			return models, err
		}
		if models[i] != nil {
			models[i].Release() // looking into a large file maps many pages around what is read
		}
	}
	if len(all) == 0 {
		return models, nil
	}
	if err := t.prove(all); err != nil {
		return models, err
	}
	for i, s := range states {
		if s == nil {
			continue
		}
		if models[i], err = t.read(s); err != nil {
			return models, err
		}
		models[i].Release()
	}
	return models, nil
}

// A state is the state_dict that is wanted of an open file.
type state struct {
	file   *torch.File
	dict   *torch.StateDict
	byName map[string]*torch.Tensor // by the names without what wrappers put before them
}

func openState(path, key string) (*state, error) {
	f, err := torch.Open(path)
	if err != nil {
		return nil, inOurs(err)
	}
	sd, err := f.StateDict(key)
	if err == nil {
		err = sd.Verify()
		f.Release()
	}
	if err != nil {
		f.Close()
		err = inOurs(err)
		var e *onnxio.Error
		if found := f.StateDicts(); sd == nil && len(found) > 1 && errors.As(err, &e) {
			e.Hint += "; say which: --state-dict " + found[0].Key + "\nSWAG is about the weights that SGD moved, not about their moving average (EMA)"
		}
		return nil, err
	}
	return newState(f, sd), nil
}

func newState(f *torch.File, sd *torch.StateDict) *state {
	s := &state{f, sd, make(map[string]*torch.Tensor, len(sd.Tensors))}
	for _, t := range sd.Tensors {
		s.byName[t.Short] = t
	}
	return s
}

// statesOf returns all that can be read of the state_dicts in a file.
func statesOf(f *torch.File) (out []*state) {
	for _, sd := range f.StateDicts() {
		if sd.Err() == nil {
			out = append(out, newState(f, sd))
		}
	}
	return out
}

// inOurs returns an error of package torch as one of this package.
func inOurs(err error) error {
	var e *torch.Error
	if !errors.As(err, &e) {
		return err
	}
	return &onnxio.Error{Path: e.Path, Tensor: e.Tensor, What: e.What, Hint: e.Hint, Err: e.Err}
}

// equal compares two tensors of a state_dict.
func equal(a, b *torch.Tensor) bool {
	if a.Tied(b) {
		return true
	}
	if a.Len() != b.Len() || a.DType != b.DType {
		return false
	}
	x, y := a.Piece(), b.Piece()
	for off := int64(0); off < a.Len(); {
		n := min(compareStretch, a.Len()-off)
		if string(x.Stretch(off, n)) != string(y.Stretch(off, n)) {
			return false
		}
		off += n
	}
	return true
}
