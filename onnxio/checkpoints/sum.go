package checkpoints

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
	"golang.org/x/sync/errgroup"
)

// sumStretch is the number of bytes that are summed before their memory is given back.
const sumStretch = 16 << 20

// Sum returns the SHA-256 of the model's file followed by its data files, in hex. progress, if not nil, is called
// with the bytes read. Sum ends when ctx ends.
func Sum(ctx context.Context, m *onnxio.Model, progress func(bytes int)) (string, error) {
	h := sha256.New()
	for _, file := range m.Files() {
		for stretch := range slices.Chunk(file, sumStretch) {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			h.Write(stretch)
			m.Release()
			if progress != nil {
				progress(len(stretch))
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Sums returns the SHA-256 of each model's files, in hex. progress, if not nil, is called with the bytes read, from
// several goroutines.
func Sums(ctx context.Context, models []*onnxio.Model, progress func(bytes int)) ([]string, error) {
	sums := make([]string, len(models))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range models {
		g.Go(weights.Guarded(func() (err error) {
			sums[i], err = Sum(ctx, m, progress)
			return err
		}))
	}
	return sums, g.Wait()
}

// A Pair is the places of two models, the earlier one first.
type Pair [2]int

// Twins returns the pairs of models with equal content. sums has the sum of each model.
func Twins(sums []string) (out []Pair) {
	first := make(map[string]int)
	for i, sum := range sums {
		if twin, ok := first[sum]; ok {
			out = append(out, Pair{twin, i})
			continue
		}
		first[sum] = i
	}
	return out
}

// GivenOnce returns the hint for two checkpoints that are the same.
func GivenOnce(a, b *onnxio.Model) string {
	return cmp.Or(sharedData(a, b), "give every checkpoint once")
}

// sharedData returns the hint for two models that refer to one data file, or "". A model of the onnx package refers to the data file
// of its first save, whatever location the next save is given.
func sharedData(a, b *onnxio.Model) string {
	if a.Path == b.Path || statefile.Is(a.Path) || statefile.Is(b.Path) || filepath.Dir(a.Path) != filepath.Dir(b.Path) {
		return ""
	}
	files := b.DataFiles()
	for _, name := range a.DataFiles() {
		if slices.Contains(files, name) {
			return fmt.Sprintf("both refer to the data file %s: after onnx.save_model with save_as_external_data, the model in memory "+
				"keeps the data file of its first save. Save each checkpoint from a copy, with a data file of its own: "+
				"onnx.save_model(copy.deepcopy(model), path, save_as_external_data=True, location=NAME)", name)
		}
	}
	return ""
}
