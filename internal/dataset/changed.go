package dataset

import (
	"errors"

	"github.com/swagwrap/swagwrap/internal/picture"
)

// Changed returns d with each picture changed after it was resized and cropped, and before it is normalised. change gets
// the index of the picture in d. It must not change its argument, and returns a picture of the same size. how describes
// the change for the ID, in values that encoding/json accepts. Changed fails if d holds no pictures, or normalised ones.
func Changed(d Dataset, change func(p picture.Picture, i int) picture.Picture, how ...any) (Dataset, error) {
	b, ok := d.(Bytes)
	if !ok || of(d).pictures == nil {
		return nil, errors.New("no 8-bit pictures: want image files, or arrays of uint8 that are not normalised yet")
	}
	return &changed{b, change, how}, nil
}

// changed is the result of [Changed].
type changed struct {
	Bytes
	change func(p picture.Picture, i int) picture.Picture
	how    []any
}

func (c *changed) common() *examples { return of(c.Bytes) }
func (c *changed) ID() string        { return IDOf(ID(c.Bytes), c.how...) }

func (c *changed) Pixels(dst []byte, i int) error {
	if err := c.Bytes.Pixels(dst, i); err != nil {
		return err
	}
	s := of(c.Bytes).pictures
	shape := sides(*s, c.Shape())
	s.Lay(dst, c.change(s.Picture(dst, int(shape[0]), int(shape[1])), i))
	return nil
}

func (c *changed) Read(dst Values, i int) error {
	b := make([]byte, len(dst.Floats))
	err := c.Pixels(b, i)
	if err == nil {
		c.Normalize(dst.Floats, b)
	}
	return err
}
