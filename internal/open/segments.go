package open

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// unreadSegments returns warnings of an embedding of token types with a trained row that no input of the graph can choose. Training
// told the texts of a pair from each other, and the graph takes all tokens as those of the first one.
func unreadSegments(s swag.Input, m *onnxio.Model) (warnings []string, err error) {
	if slices.ContainsFunc(m.FeedInputs(), func(v onnxio.Value) bool { return dataset.Given(v.Name) == "type" }) || len(s.Checkpoints) < 2 {
		return nil, nil
	}
	for _, t := range s.Layout.Tensors {
		if t.Role != weights.Parameter || !strings.Contains(t.Name, "token_type") || len(t.Shape) != 2 || t.Shape[0] < 2 {
			continue
		}
		rows := make([][]float32, 2)
		for i, ck := range []int{0, len(s.Checkpoints) - 1} {
			rows[i] = make([]float32, t.Len()-t.Shape[1])
			if err := s.Checkpoints[ck].Theta.ReadAt(rows[i], t.Offset+t.Shape[1]); err != nil {
				return nil, err
			}
		}
		if trained(rows[0], rows[1]) {
			warnings = append(warnings, fmt.Sprintf("tensor %q: row 1 was trained, and the graph has no input for token types: it takes "+
				"all tokens as type 0. Predictions of pairs of texts are wrong then. Export the graph with token_type_ids as an input, "+
				"and give the data that column", t.Name))
		}
	}
	return warnings, nil
}

// trained reports whether values moved in another way than weight decay moves them, which only makes them smaller.
func trained(before, after []float32) bool {
	var product, square, change float64
	for i, v := range before {
		product, square = product+float64(v)*float64(after[i]), square+float64(v)*float64(v)
		change += math.Pow(float64(after[i])-float64(v), 2)
	}
	if change == 0 || square == 0 {
		return change > 0
	}
	share, rest := product/square, 0.0
	for i, v := range before {
		rest += math.Pow(float64(after[i])-share*float64(v), 2)
	}
	return rest > change/4
}
