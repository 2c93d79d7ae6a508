package checkpoints

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/weights"
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

// Twins returns the paths of models with equal content, in pairs.
func Twins(models []*onnxio.Model, sums []string) [][2]string {
	var out [][2]string
	first := make(map[string]string)
	for i, m := range models {
		if twin, ok := first[sums[i]]; ok {
			out = append(out, [2]string{twin, m.Path})
			continue
		}
		first[sums[i]] = m.Path
	}
	return out
}
