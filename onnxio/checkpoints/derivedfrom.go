package checkpoints

import (
	"math"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// sampled is the number of elements of a constant that are searched among the weights. distinct is the number of
// different elements that are needed for a decision.
const (
	sampled  = 64
	distinct = 16
)

// derivedFrom returns a tensor of the state_dict whose elements are in a constant of the graph, or nil. Exporters that
// fold constants reorder the gates of a recurrent layer, or pick the rows of a table, without changing the numbers. A
// constant is no constant if nearly all its sampled elements are weights.
func (t *Template) derivedFrom(into *onnxio.Tensor, m *matching) *statefile.Tensor {
	if into.Len() < distinct {
		return nil
	}
	dtype := into.ElemType.DType()
	wanted := make(map[float32]bool)
	value := make([]float32, 1)
	for k := int64(0); k < 4*sampled && len(wanted) < sampled; k++ {
		dtype.Float32s(value, t.model.Stretch(into, k*(into.Len()-1)/(4*sampled-1), 1))
		if value[0] == value[0] && value[0] != 0 {
			wanted[value[0]] = true
		}
	}
	if len(wanted) < distinct {
		return nil
	}
	var maybe [1 << 16]bool // by the upper half of the bits: false for most weights
	for v := range wanted {
		maybe[math.Float32bits(v)>>16] = true
	}
	var first *statefile.Tensor
	found := 0
	buffer := make([]float32, 1<<14)
	for _, x := range m.dict.Tensors {
		for off := int64(0); off < x.Len(); {
			part := buffer[:min(int64(len(buffer)), x.Len()-off)]
			x.DType.Float32s(part, x.Stretch(off, int64(len(part))))
			off += int64(len(part))
			for _, v := range part {
				if maybe[math.Float32bits(v)>>16] && wanted[v] {
					delete(wanted, v)
					if found++; first == nil {
						first = x
					}
				}
			}
		}
	}
	if found < 9*(found+len(wanted))/10 {
		return nil
	}
	return first
}
