package infer_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// A member written as a file gives, in a session of default options, the
// probabilities that scoring adds up. The two sessions differ in threads only.
func TestExportedMemberScoresAlike(t *testing.T) {
	t.Parallel()
	n, e := infertest.Network(t, infertest.Posterior(t)), infertest.Run(t)
	test := infertest.Digits(t, "val.npz")
	err := infer.EachMember(t.Context(), nil, n.Posterior, swag.SampleOptions{Seed: 1, Scale: 0.5}, 0, 1, func(k int, parameters weights.Vector) error {
		fresh, err := batchnorm.Recompute(t.Context(), e, n, parameters, infertest.Training(t))
		if err != nil {
			return err
		}
		path := filepath.Join(t.TempDir(), "member.onnx")
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		exported, err := onnxio.NewExportTemplate(n.Passes.Model, n.Posterior.Layout)
		if err != nil {
			return err
		}
		if err := exported.WriteTo(f, 0, n.Posterior.Layout, parameters, weights.Slice(fresh.Statistics)); err != nil {
			return err
		}
		model, err := n.Model("member", parameters, weights.Slice(fresh.Statistics))
		if err != nil {
			return err
		}
		sums := &infer.Sums{}
		if err := e.Predict(t.Context(), model, test, sums); err != nil {
			return err
		}
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s, err := e.Runtime().NewSession(file, ort.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		x := make([]float32, test.Len()*28*28)
		if _, err := dataset.ReadBatch(test, dataset.Floats(x), dataset.Order{}.Indices(test.Len())); err != nil {
			return err
		}
		out, err := s.Run(t.Context(), []ort.Tensor{{Shape: []int64{int64(test.Len()), 1, 28, 28}, F32: x}})
		if err != nil {
			return err
		}
		logits := make([]float64, len(out[0].F32))
		for i, v := range out[0].F32 {
			logits[i] = float64(v)
		}
		for i, want := range calibrate.Softmax(nil, logits, 10, 1) {
			if math.Abs(sums.Outcome[i]-want) > 1e-5 { // float32: ONNX Runtime fuses the file, which keeps biases of 0, less
				t.Fatalf("probability %d: %v when scored, %v from the file", i, sums.Outcome[i], want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Predictions and statistics do not depend on the number of workers, and a
// cancelled run ends with the context's error.
func TestEngineWorkers(t *testing.T) {
	t.Parallel()
	n, rt := infertest.Network(t, infertest.Posterior(t)), infertest.Runtime(t)
	test, bn := infertest.Digits(t, "val.npz"), infertest.Training(t)
	bn.Order = dataset.Order{Shuffle: true, Seed: 3, Limit: 300}
	type outcome struct {
		statistics []float32
		sums       *infer.Sums
	}
	run := func(ctx context.Context, workers int) (o outcome, err error) {
		e := infer.Run{Engine: infer.NewEngine(rt, infer.EngineOptions{Threads: workers, BatchSize: 64})}
		err = infer.EachMember(ctx, nil, n.Posterior, swag.SampleOptions{Seed: 1, Scale: 1, Covariance: swag.Diagonal, Workers: workers}, 0, 1, func(_ int, parameters weights.Vector) error {
			fresh, err := batchnorm.Recompute(ctx, e, n, parameters, bn)
			if err != nil {
				return err
			}
			if fresh.Images != 300 || fresh.BatchSize != 64 {
				t.Errorf("%d images in batches of %d", fresh.Images, fresh.BatchSize)
			}
			model, err := n.Model("member", parameters, weights.Slice(fresh.Statistics))
			if err != nil {
				return err
			}
			o = outcome{fresh.Statistics, &infer.Sums{}}
			return e.Predict(ctx, model, test, o.sums)
		})
		return o, err
	}
	one, err := run(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	four, err := run(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(one.statistics, four.statistics) || !slices.Equal(one.sums.Outcome, four.sums.Outcome) || !slices.Equal(one.sums.Entropy, four.sums.Entropy) ||
		one.sums.Members != four.sums.Members || one.sums.Weight != four.sums.Weight || one.sums.Task != four.sums.Task {
		t.Error("1 and 4 workers differ")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, 2); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("cancelled: %v", err)
	}
}

// A layer that sees one element per channel has no variance: BatchNorm1d with
// a last batch of one image.
func TestRecomputeRefusesSingleImage(t *testing.T) {
	t.Parallel()
	n, e := infertest.Network(t, infertest.Posterior(t)), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 333})}
	bn := infertest.Training(t) // 1,000 images: three batches of 333 and one image
	infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
		_, err := batchnorm.Recompute(t.Context(), e, n, parameters, bn)
		infertest.WantError(t, err, `train.npz: tensor "fc1_bn.running_mean": 1000 examples in batches of 333 leave a batch of one`)
		return nil
	})
}

// Where nobody gave a size, one image behind the last batch joins it, in each pass. With a size, it is refused.
func TestRecomputeJoinsSingleImage(t *testing.T) {
	t.Parallel()
	n := infertest.Network(t, infertest.Posterior(t))
	const whole = infer.DefaultBatchSize
	for images, want := range map[int][]int{whole: {whole}, whole + 1: {whole + 1}, whole + 2: {whole, 2}, 2*whole + 1: {whole, whole + 1}} {
		bn := infertest.Training(t)
		bn.Order.Limit = images
		asked := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: whole})}
		free := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{})}
		infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
			r, err := batchnorm.Recompute(t.Context(), free, n, parameters, bn)
			if err != nil {
				return err
			}
			var got []int
			for k := range r.Batches() {
				got = append(got, r.Batch(k).Images)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d images: batches of %d, want %d", images, got, want)
			}
			same, err := batchnorm.Recompute(t.Context(), asked, n, parameters, bn)
			if images%whole == 1 {
				infertest.WantError(t, err, "leave a batch of one")
			} else if err != nil || !slices.Equal(same.Statistics, r.Statistics) {
				t.Errorf("%d images: other statistics than in batches of %d: %v", images, whole, err)
			}
			return nil
		})
	}
}

// Inputs are of the type that the network takes, and outputs of any float type.
func TestTypes(t *testing.T) {
	t.Parallel()
	values := []float32{0, 1, 200}
	for _, dtype := range []string{"float32", "float64", "float16"} {
		in, err := infer.Input(dtype, values)
		if err != nil || in.DType() != dtype {
			t.Errorf("%s: %s, %v", dtype, in.DType(), err)
		}
		if out, err := infer.Float32s(in); err != nil || !slices.Equal(out, values) {
			t.Errorf("%s: %v, %v", dtype, out, err)
		}
	}
	for _, dtype := range []string{"int64", "uint8"} {
		if in, err := infer.Input(dtype, values); err != nil || in.DType() != dtype {
			t.Errorf("%s: %s, %v", dtype, in.DType(), err)
		}
	}
	for dtype, size := range map[string]int{"uint16": 2, "int32": 4, "uint32": 4, "uint64": 8} {
		in, err := infer.Input(dtype, values)
		if err != nil || in.DType() != dtype || len(in.Raw) != 3*size || in.Raw[size] != 1 || in.Raw[2*size] != 200 {
			t.Errorf("%s: %v, %v", dtype, in, err)
		}
	}
	if in, err := infer.Input("int16", []float32{-2}); err != nil || !slices.Equal(in.Raw, []byte{0xfe, 0xff}) {
		t.Errorf("int16: %v, %v", in.Raw, err)
	}
	if _, err := infer.Input("int8", values); err == nil {
		t.Error("200 was taken for an int8")
	}
	for dtype, want := range map[string]string{"int64": "takes whole numbers, not 0.5", "uint8": "takes whole numbers up to 255, not 0.5", "bool": "takes bool, not 0.5",
		"string": "takes string, want a float type, an integer type or bool"} {
		_, err := infer.Input(dtype, []float32{0.5})
		infertest.WantError(t, err, `tensor "x": `+want)
	}
	if _, err := infer.Input("uint8", []float32{256}); err == nil {
		t.Error("256 was taken for a byte")
	}
}

// A network that takes batches of one size is not given others.
func TestFixedBatchSize(t *testing.T) {
	t.Parallel()
	n, images := infertest.Network(t, infertest.Fit(t, infertest.Two(t, "fixed-batch")...)), tinyImages(t)
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 5})}
	infertest.SWA(t, n.Posterior, func(parameters weights.Vector) error {
		r, err := batchnorm.Recompute(t.Context(), e, n, parameters, batchnorm.Training{Data: images})
		if err != nil || r.Images != 10 || r.BatchSize != 5 { // the graph of the pass takes any batch
			t.Errorf("%d of 10 images in batches of %d, %v", r.Images, r.BatchSize, err)
		}
		_, err = infer.NewScorer(t.Context(), e.Engine, members{n, 1}, images, infer.Options{})
		infertest.WantError(t, err, "takes batches of 4 only, not of 5")
		return nil
	})
}
