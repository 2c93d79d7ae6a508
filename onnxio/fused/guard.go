package fused

import "github.com/swagwrap/swagwrap/onnxio"

// Finite adds a value [batch, 1] that is 0, and NaN for an example with an input that is not finite. Added to an output, it keeps
// that visible where a runtime drops NaN in Relu, Clip or Max. Finite returns "" if no input can be NaN.
//
// The value is the sum of x − x: comparisons and IsNaN need newer opsets, and some compilers turn 0·x into 0.
func (m *Model) Finite() (sum string) {
	for _, v := range m.inputs {
		x := v.Name
		switch v.ElemType {
		case onnxio.Float, onnxio.Double:
		case onnxio.Float16, onnxio.BFloat16:
			x = m.Floats(x) // a runtime may have no Sub of them
		default:
			continue
		}
		x = m.Op("Sub", x, x)
		if len(v.Shape) != 2 {
			x = m.Rowwise("Flatten", x)
		}
		x = m.Sum(x)
		if v.ElemType == onnxio.Double {
			x = m.Floats(x)
		}
		if sum == "" {
			sum = x
		} else {
			sum = m.Op("Add", sum, x)
		}
	}
	return sum
}

// Finite is [Model.Finite] with a row for each position, [batch·positions, 1]. Call [Positions.Scores] first.
func (p *Positions) Finite() string {
	m := p.model
	sum := m.Finite()
	if sum == "" {
		return ""
	}
	ones := make([]int64, p.rank-1) // [batch, 1, …], as many axes as the positions have
	for i := range ones {
		ones[i] = 1
	}
	ones[0] = -1
	each := m.Op("Expand", m.Op("Reshape", sum, m.Integers(ones...)), p.lead())
	return m.Op("Reshape", each, m.Integers(-1, 1))
}
