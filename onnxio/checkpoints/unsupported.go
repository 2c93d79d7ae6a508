package checkpoints

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
)

// quantised are the operators that compute with integers instead of the floats that a network was trained with.
var quantised = map[string]bool{
	"QLinearConv": true, "QLinearMatMul": true, "ConvInteger": true, "MatMulInteger": true,
	"DequantizeLinear": true, "QuantizeLinear": true, "DynamicQuantizeLinear": true, "MatMulNBits": true,
}

// random are the operators that draw numbers in every run. Dropout is not in the list, because it is switched off.
var random = map[string]bool{
	"RandomNormal":      true,
	"RandomNormalLike":  true,
	"RandomUniform":     true,
	"RandomUniformLike": true,
	"Multinomial":       true,
	"Bernoulli":         true,
}

// classical are the operators of ai.onnx.ml that hold what was learned in their attributes.
var classical = map[string]bool{
	"LinearClassifier": true, "LinearRegressor": true, "SVMClassifier": true, "SVMRegressor": true,
	"TreeEnsembleClassifier": true, "TreeEnsembleRegressor": true, "TreeEnsemble": true,
}

// unsupported returns an error if a model of this kind cannot have a posterior, whatever its checkpoints are.
func unsupported(m *onnxio.Model) error {
	for _, p := range m.Places() {
		if quantised[p.Node.OpType] {
			return &onnxio.Error{Path: m.Path, What: fmt.Sprintf("is quantised: node %q is %s", p.Node.Name, p.Node.OpType),
				Hint: "a posterior is over the weights that SGD moved: export the float network, and quantise what " +
					setting.Line(setting.Export.String()) + " writes"}
		}
		if p.Node.Domain == "ai.onnx.ml" && classical[p.Node.OpType] {
			return &onnxio.Error{
				Path: m.Path,
				What: fmt.Sprintf("its weights are attributes of a node of type %s, and no tensors", p.Node.OpType),
				Hint: "a posterior is over tensors that SGD moved: of scikit-learn's models, MLPClassifier and MLPRegressor have such " +
					"tensors",
			}
		}
		if random[p.Node.OpType] {
			return &onnxio.Error{Path: m.Path, What: fmt.Sprintf("draws at random: node %q is %s", p.Node.Name, p.Node.OpType),
				Hint: "its predictions are others in every run, so that no result could be had twice: export the network in evaluation " +
					"mode, without the noise"}
		}
	}
	for _, t := range m.Tensors() {
		if t.ElemType == onnxio.String {
			return &onnxio.Error{Path: m.Path, Tensor: t.Name, What: "holds strings, which no network is trained with",
				Hint: "export the network alone, without the look-up of its class names"}
		}
	}
	return nil
}
