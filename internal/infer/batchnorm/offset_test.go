package batchnorm_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/weights"
)

// The variance of features with a large offset keeps its digits: it is no mean of squares minus a squared mean, which in float32
// would be off by 100 % at 3000.
func TestOffset(t *testing.T) {
	t.Parallel()
	const rows, features = 64, 4
	n := infertest.Network(t, infertest.Fit(t, infertest.Open(t, "testdata/offset-1.onnx"), infertest.Open(t, "testdata/offset-2.onnx")))
	for _, offset := range []float64{0, 100, -1000, 3000, 10000} {
		r := rand.New(rand.NewPCG(1, 2))
		file := numpy.Header("<f4", rows, features)
		var sums, squares [features]float64
		x := make([][features]float64, rows)
		for i := range x {
			for c := range features {
				v := float32(offset + r.NormFloat64())
				file = binary.LittleEndian.AppendUint32(file, math.Float32bits(v))
				x[i][c] = float64(v)
				sums[c] += x[i][c]
			}
		}
		for i := range x {
			for c := range features {
				d := x[i][c] - sums[c]/rows
				squares[c] += d * d
			}
		}
		path := filepath.Join(t.TempDir(), "x.npy")
		if err := os.WriteFile(path, file, 0o666); err != nil {
			t.Fatal(err)
		}
		data := batchnorm.Training{Data: infertest.Data(t, path, dataset.Options{})}
		infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
			got, err := batchnorm.Recompute(t.Context(), infertest.Run(t), n, parameters, data)
			if err != nil {
				return err
			}
			mean, _ := n.Posterior.Layout.Find("bn.running_mean")
			variance, _ := n.Posterior.Layout.Find("bn.running_var")
			for c := range int64(features) {
				m, v := float64(got.Statistics[mean.Offset+c]), float64(got.Statistics[variance.Offset+c])
				if infertest.Far(m, sums[c]/rows, 1e-6, 1e-6) || infertest.Far(v, squares[c]/(rows-1), 1e-3, 0) {
					t.Errorf("offset %g, feature %d: mean %v, want %v; variance %v, want %v", offset, c, m, sums[c]/rows, v, squares[c]/(rows-1))
				}
			}
			return nil
		})
	}
}
