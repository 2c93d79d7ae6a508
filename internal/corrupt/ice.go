package corrupt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// drawn is the number of photographs that the published function draws from, although it names six.
const drawn = 5

// Ice reads the first five photographs of a folder, in the order of their names. It fails if they take more than so many
// bytes.
func Ice(folder string, memory int64) (photographs []picture.Picture, err error) {
	left := memory
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, file.Error(folder, file.Cause(err))
	}
	const most = 1 << 26 // bytes of a file
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		if e.IsDir() {
			continue
		}
		content, err := file.Read(path, most)
		if err != nil {
			return nil, err
		}
		if !picture.Known(content) {
			continue
		}
		p, err := picture.Open(content)
		if need := p.Memory(false); err == nil && need > left {
			err = fmt.Errorf("decoding %d×%d pixels takes %d MiB, and %d are left for photographs of ice: %s allows more", p.W, p.H,
				need>>20, left>>20, setting.Memory.With("SIZE"))
		}
		var pixels picture.Picture
		if err == nil {
			pixels, err = p.Decode(false)
		}
		if err != nil {
			return nil, file.Error(path, err)
		}
		left -= int64(len(pixels.Pix))
		if photographs = append(photographs, pixels.As(3)); len(photographs) == drawn {
			return photographs, nil
		}
	}
	if photographs == nil {
		return nil, file.Error(folder, errors.New("no photographs of ice"))
	}
	return photographs, nil
}

// FitsIce fails if a photograph of ice is not larger than pictures of w×h pixels.
func (c Corruption) FitsIce(w, h int) error {
	for i, p := range c.Ice {
		if step, iw, ih := iceSize(p, min(w, h) < smallest); iw <= w || ih <= h {
			return fmt.Errorf("photograph %d of ice has %d×%d pixels, want more than %d×%d", i+1, p.W, p.H, step*w, step*h)
		}
	}
	return nil
}

// iceSize returns the size of a photograph of ice. Every step-th of its pixels is used.
func iceSize(p picture.Picture, small bool) (step, w, h int) {
	if small {
		return 5, (p.W + 2) / 5, (p.H + 2) / 5
	}
	return 1, p.W, p.H
}
