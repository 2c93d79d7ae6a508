package open

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
)

// The versions that every accepted release of ONNX Runtime takes.
const (
	oldOpset, newOpset = 7, 21
	newIR              = 10
)

// unimplemented matches ONNX Runtime's words for an operator that it knows, but not with these types.
var unimplemented = regexp.MustCompile(`Could not find an implementation for (\w+)\(\d+\) node with name '([^']*)'`)

// Takes fails if the chosen ONNX Runtime cannot load a network, so that nothing is written that no later command can use. It opens
// a session only for versions of ONNX that not every release takes. Without ONNX Runtime nothing is known.
func Takes(ctx context.Context, a *Opener, o RuntimeOptions, m *onnxio.Model) error {
	if m.IRVersion <= newIR && m.Opset >= oldOpset && m.Opset <= newOpset {
		return nil
	}
	rt, _, err := a.chosenRuntime(o)
	if errors.As(err, new(*ort.LibraryError)) {
		a.Debugf("%s: not asked whether ONNX Runtime takes opset %d and IR %d: %v", m.Path, m.Opset, m.IRVersion, err)
		return nil
	}
	if err != nil {
		return err
	}
	filled, err := m.Runtime()
	if err != nil {
		return err
	}
	session, err := rt.NewFilledSession(ctx, filled, ort.Options{Threads: 1})
	if err == nil {
		return session.Close()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	hint := fmt.Sprintf("export again for an opset of %d to %d, such as torch.onnx.export(..., opset_version=20)", oldOpset, newOpset)
	if m.Opset >= oldOpset && m.Opset <= newOpset {
		hint = fmt.Sprintf("the file is right without its new version: model = onnx.load(path); model.ir_version = %d; "+
			"onnx.save(model, path)", newIR)
	}
	if op := unimplemented.FindStringSubmatch(err.Error()); op != nil {
		hint = fmt.Sprintf("it has no %s for the types of node %q, whatever the opset. Store the tensors that this node reads as float32 "+
			"or float16, and export the network without it", op[1], op[2])
	}
	return &onnxio.Error{
		Path: m.Path,
		What: fmt.Sprintf("ONNX Runtime %s does not take this network of opset %d and IR %d", rt.Version(), m.Opset, m.IRVersion),
		Err:  err,
		Hint: hint + rt.Newer(),
	}
}
