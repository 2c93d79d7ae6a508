package batchnorm_test

import (
	"slices"
	"testing"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
)

// What is between two examples has whole numbers where the network takes such, and others
// where it takes those.
func TestBlendFields(t *testing.T) {
	t.Parallel()
	for name, whole := range map[string]bool{"beside": false, "tokens": true} {
		n := infertest.Network(t, infertest.Fit(t, infertest.Open(t, infertest.Path(infertest.Small, name+"-1.onnx")), infertest.Open(t, infertest.Path(infertest.Small, name+"-2.onnx"))))
		data := infertest.Data(t, infertest.Path(infertest.Small, name+".npz"), dataset.Options{Fields: n.Fields()})
		b := batchnorm.Blend(batchnorm.Training{Data: data, Rule: bnupdate.Reference}, n, false)
		if !slices.EqualFunc(dataset.Fields(b), dataset.Fields(data), func(a, b dataset.Field) bool { return a.Name == b.Name }) {
			t.Errorf("%s: fields %v", name, dataset.Fields(b))
		}
		size, err := dataset.SizeOf(data)
		if err != nil || whole != (size.Floats == 0) {
			t.Fatalf("%s: %v, an example has %d", name, err, size)
		}
		row, found := size.Make(1), false
		for i := range b.Len() {
			if err := b.Read(row, i); err != nil {
				t.Fatal(err)
			}
			found = found || slices.ContainsFunc(row.Floats, func(v float32) bool { return v != float32(int(v)) })
		}
		if found == whole {
			t.Errorf("%s: there are fractions: %v", name, found)
		}
	}
}
