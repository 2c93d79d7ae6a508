package baseline

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/onnxio"
)

// Features returns a tensor of a network for some rows of data, rows×width. "" is the input of the last linear layer. A
// tensor with more than two dimensions is averaged over those behind the second, such as height and width.
type Features func(ctx context.Context, tensor string, data dataset.Dataset, rows []int) (*mat.Dense, error)

// Head returns the last linear layer of a network: its weights, scores×width, and its biases.
type Head func(ctx context.Context) (*mat.Dense, []float64, error)

// lastLinear implements [Head] for the SWA network of the first run.
func (w *work) lastLinear(ctx context.Context) (*mat.Dense, []float64, error) {
	swa, err := w.swa(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	n := w.Runs[0].Network
	head, err := n.Skeleton().Head(n.Output())
	if err != nil {
		return nil, nil, err
	}
	all, err := headWeights(n.Posterior.Layout, head, swa.Filled.Parameters)
	if err != nil {
		return nil, nil, err
	}
	bias, width := make([]float64, head.Scores), int(head.Width)
	if _, columns := all.Dims(); columns > width {
		mat.Col(bias, width, all)
	}
	return mat.DenseCopyOf(all.Slice(0, int(head.Scores), 0, width)), bias, nil
}

// tap implements [Features] for the SWA network of the first run.
func (w *work) tap(ctx context.Context, tensor string, data dataset.Dataset, rows []int) (*mat.Dense, error) {
	swa, err := w.swa(ctx, 0)
	if err != nil {
		return nil, err
	}
	n := w.Runs[0].Network
	elem := onnxio.Float
	head, err := n.Skeleton().Head(n.Output())
	switch {
	case tensor == "" && err != nil:
		return nil, err
	case tensor == "":
		tensor, elem = head.Features, head.ElemType
	case !n.Skeleton().Makes(tensor):
		hint := ""
		if err == nil {
			hint = fmt.Sprintf("; the input of its last linear layer is %q", head.Features)
		}
		return nil, fmt.Errorf("tensor %q: is not in the graph%s", tensor, hint)
	}
	template, err := onnxio.TapTemplate(n.Skeleton(), tensor, elem, n.Posterior.Layout)
	if err != nil {
		return nil, err
	}
	m, err := n.Other(template, "SWA", swa.Filled.Parameters, swa.Filled.Statistics)
	if err != nil {
		return nil, err
	}
	session, err := w.run.Open(ctx, n.Graph, m.Filled, tensor)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	size, err := w.run.TrainingBatch(session)
	if err != nil {
		return nil, err
	}
	var out *mat.Dense
	for from := 0; from < len(rows); from += size {
		idx := rows[from:min(from+size, len(rows))]
		found, err := session.Feed(ctx, data, idx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		w.run.Report(len(idx))
		values, err := infer.Float32s(found[0])
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", tensor, err)
		}
		shape := found[0].Shape
		if len(shape) < 2 || shape[0] < int64(len(idx)) || shape[1] < 1 {
			return nil, fmt.Errorf("tensor %q: has the shape %v for %d examples, want a row of features for each", tensor, shape, len(idx))
		}
		width := int(shape[1])
		each := len(values) / int(shape[0]) / width // positions
		if out == nil {
			out = mat.NewDense(len(rows), width, nil)
		}
		for i := range idx {
			row := out.RawRowView(from + i)
			for j := range row {
				for _, v := range values[(i*width+j)*each:][:each] {
					row[j] += float64(v) / float64(each)
				}
				if row[j]-row[j] != 0 {
					return nil, fmt.Errorf("tensor %q: a value is not finite", tensor)
				}
			}
		}
	}
	return out, nil
}
