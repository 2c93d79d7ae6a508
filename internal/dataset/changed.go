package dataset

import (
	"errors"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// Changed returns d with each picture changed after it was resized and cropped, and before it is normalised. change gets
// the index of the picture in d. It must not change its argument, and returns a picture of the same size. Up to memory
// bytes of changed pictures are kept, because every network reads them again. how describes the change for the ID, in
// values that encoding/json accepts. Changed fails if d holds no pictures, or normalised ones.
func Changed(d Dataset, memory int64, change func(p picture.Picture, i int) picture.Picture, how ...any) (Dataset, error) {
	b, ok := d.(Bytes)
	s := of(d).pictures
	if !ok || s == nil {
		return nil, errors.New("no 8-bit pictures: want image files, or arrays of uint8 that are not normalised yet")
	}
	own := *of(d)
	own.n, own.labels, own.name, own.id = d.Len(), d.Labels(), d.Name, IDOf(ID(d), how...)
	size := sides(*s, own.shape)
	own.cache = newCache(own.elems, memory, func(dst []byte, i int) ([]byte, error) {
		err := b.Pixels(dst, i)
		if err == nil {
			s.Lay(dst, change(s.Picture(dst, int(size[0]), int(size[1])), i))
		}
		return dst, err
	})
	return newPixels(&own, own.norm, own.cache.load), nil
}
