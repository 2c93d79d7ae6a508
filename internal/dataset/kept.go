package dataset

import "github.com/swagwrap/swagwrap/internal/memory"

// Kept returns the examples [first, end) of d, for a reader that comes several times. Image files are decoded once, as far as the
// pool has memory. Other examples are in memory already.
func Kept(d Dataset, first, end int, pool *memory.Pool) Dataset {
	part := Part(d, first, end)
	b, ok := part.(Bytes)
	if !ok || examplesIn(d).file == nil || examplesIn(d).cache != nil {
		return part
	}
	own := *examplesIn(d)
	own.n, own.labels, own.name, own.id = part.Len(), part.Labels(), part.Name, ID(part)
	own.file, own.fileSize, own.original, own.loaded, own.stored = nil, nil, nil, nil, nil // their indexes are those of d
	own.cache = newCache(own.elems, pool, func(dst []byte, i int) ([]byte, error) { return dst, b.Pixels(dst, i) })
	return newPixels(&own, own.norm, own.cache.load)
}
