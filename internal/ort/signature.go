package ort

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/onnxio"
)

// ValueInfo describes an input or output as the model declares it.
type ValueInfo struct {
	Name string
	// DType is "float32", "float64", "float16", "uint8", "int64", ONNX's name of another type, or "" if the model
	// does not declare it.
	DType string
	// Shape has -1 for a dynamic dimension. It is empty for a scalar, and nil if the model does not declare it.
	Shape []int64

	dims []string // names of the dynamic dimensions; "" for others
}

func valueInfos(values []onnxio.Value) []ValueInfo {
	list := make([]ValueInfo, len(values))
	for i, v := range values {
		list[i] = ValueInfo{strings.Clone(v.Name), DType(v.ElemType), v.Shape, v.Dims}
	}
	return list
}

// DType returns the name of a type in [ValueInfo]: "" if it is not declared.
func DType(e onnxio.ElemType) string {
	switch e {
	case 0:
		return ""
	case onnxio.Float:
		return "float32"
	case onnxio.Double:
		return "float64"
	}
	return e.String()
}

// selectOutputs returns the wanted outputs in the wanted order.
func selectOutputs(all []ValueInfo, want []string) ([]ValueInfo, error) {
	if want == nil {
		return all, nil
	}
	selected := make([]ValueInfo, len(want))
	for i, name := range want {
		j := slices.IndexFunc(all, func(v ValueInfo) bool { return v.Name == name })
		if j < 0 {
			return nil, fmt.Errorf("the model has no output %q, it has %s", name, quoted(all))
		}
		selected[i] = all[j]
	}
	return selected, nil
}

// checkSignature refuses types that a Tensor cannot hold and signatures that make the binding panic.
func checkSignature(inputs, outputs []ValueInfo) error {
	if len(inputs) == 0 {
		return errors.New("the model has no inputs")
	}
	if len(outputs) == 0 {
		return errors.New("no outputs to compute")
	}
	for _, v := range inputs {
		if raw := RawSize(v.DType) > 0 && !v.scalar(); v.DType == "" || !raw && !supported(v) {
			return fmt.Errorf("input %q: %s", v.Name, v.unsupported())
		}
	}
	for _, v := range outputs {
		if !supported(v) {
			return fmt.Errorf("output %q: %s", v.Name, v.unsupported())
		}
		if v.DType == "float16" && v.Shape == nil {
			return fmt.Errorf("output %q: a float16 output must have a declared shape", v.Name)
		}
	}
	return nil
}

// supported reports whether a Tensor can hold the value, as far as the model declares its type.
func supported(v ValueInfo) bool {
	switch v.DType {
	case "float16":
		return !v.scalar()
	case "", "float32", "float64", "uint8", "int64":
		return true
	}
	return false
}

func (v ValueInfo) unsupported() string {
	if v.scalar() {
		return fmt.Sprintf("a scalar of type %q is not supported", v.DType)
	}
	return fmt.Sprintf("type %q is not supported", v.DType)
}

func (v ValueInfo) scalar() bool { return v.Shape != nil && len(v.Shape) == 0 }

func (v ValueInfo) formatShape() string { return onnxio.FormatShape(v.Shape, v.dims) }

func names(values []ValueInfo) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = v.Name
	}
	return list
}

// quoted lists the names of values for an error message.
func quoted(values []ValueInfo) string {
	list := names(values)
	for i, name := range list {
		list[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(list, ", ")
}
