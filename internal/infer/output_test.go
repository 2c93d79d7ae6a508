package infer

import (
	"errors"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// Names and widths decide among outputs. What they leave open is asked.
func TestChooseOutput(t *testing.T) {
	out := func(name string, elem onnxio.ElemType, shape ...int64) onnxio.Value {
		return onnxio.Value{Name: name, ElemType: elem, Shape: append([]int64{-1}, shape...), Dims: make([]string, len(shape)+1)}
	}
	float := func(name string, shape ...int64) onnxio.Value { return out(name, onnxio.Float, shape...) }
	features, logits, probs := float("features", 16), float("logits", 4), float("probabilities", 4)
	dictionaries := onnxio.Value{Name: "output_probability", NoTensor: true}
	for name, tt := range map[string]struct {
		outputs []onnxio.Value
		classes int
		want    string // the output, or the error
	}{
		"one":                  {[]onnxio.Value{float("y", 4)}, 0, "y"},
		"a name":               {[]onnxio.Value{features, logits}, 0, "logits"},
		"a name first":         {[]onnxio.Value{logits, features}, 0, "logits"},
		"logits before others": {[]onnxio.Value{probs, features, logits}, 0, "logits"},
		"scores":               {[]onnxio.Value{features, float("class_scores", 4)}, 0, "class_scores"},
		"an auxiliary head":    {[]onnxio.Value{float("aux_logits", 4), float("main.logits", 4)}, 0, "main.logits"},
		"exact":                {[]onnxio.Value{float("coarse_logits", 4), float("Logits", 4)}, 0, "Logits"},
		"labels are no scores": {[]onnxio.Value{out("label", onnxio.Int64), probs}, 0, "probabilities"},
		"labels without names": {[]onnxio.Value{out("a", onnxio.Int64), float("b", 4)}, 0, "b"},
		"width":                {[]onnxio.Value{float("12", 16), float("14", 4)}, 4, "14"},
		"width before name":    {[]onnxio.Value{float("attention_scores", 9), float("y", 4)}, 4, "y"},
		"binary":               {[]onnxio.Value{features, float("y", 1)}, 2, "y"},
		"pixels":               {[]onnxio.Value{float("features", 16, 8, 8), float("y", 4, 8, 8)}, 4, "y"},
		"two of that width":    {[]onnxio.Value{probs, logits}, 4, "logits"},
		"no name":              {[]onnxio.Value{float("12", 16), float("14", 4)}, 0, `m.onnx: the network has 2 outputs that may be scores: "12" [? 16], "14" [? 4]`},
		"another width":        {[]onnxio.Value{float("12", 16), float("14", 4)}, 3, "2 outputs that may be scores"},
		"two heads":            {[]onnxio.Value{float("age_logits", 4), float("sex_logits", 2)}, 0, "2 outputs that may be scores"},
		"only labels":          {[]onnxio.Value{out("label", onnxio.Int64)}, 0, `m.onnx: tensor "label": int64, want scores, which have a float type`},
		"ZipMap":               {[]onnxio.Value{out("label", onnxio.Int64), dictionaries}, 0, `tensor "label": int64`},
		"a map alone":          {[]onnxio.Value{dictionaries}, 0, "a sequence or a map, want a tensor of scores"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &onnxio.Model{Path: "m.onnx", Graph: &onnxio.Graph{Outputs: tt.outputs}}
			got, err := ChooseOutput(m, swag.Card{ClassNames: make([]string, tt.classes)})
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %s", err, tt.want)
				}
				if several := (*SeveralOutputs)(nil); errors.As(err, &several) && len(several.Hints()) == 0 {
					t.Error("no hint")
				}
				return
			}
			if got.Output != tt.want || (got.Why == "") != (tt.want == tt.outputs[0].Name && len(tt.outputs) == 1) {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
	m := &onnxio.Model{Graph: &onnxio.Graph{Outputs: []onnxio.Value{logits, features}}}
	if got, err := ChooseOutput(m, swag.Card{Output: "features"}); err != nil || got != (Choice{Output: "features"}) {
		t.Errorf("the user's choice: %v, %v", got, err)
	}
}
