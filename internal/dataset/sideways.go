package dataset

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// Sideways counts the pictures that a command reads, and those of them that have an orientation that is not applied. A picture
// counts once, however often it is read. Any number of goroutines may use it.
type Sideways struct {
	mu   sync.Mutex
	seen map[string]*rowsSeen // by the inputs
}

// rowsSeen has two bits for each picture of a dataset.
type rowsSeen struct{ read, sideways []atomic.Uint64 }

// of returns the count of a dataset of image files. Datasets of the same inputs share it.
func (s *Sideways) of(e *examples) *rowsSeen {
	key := fmt.Sprint(e.n)
	for _, source := range e.sources {
		key += "\x00" + source.SHA256
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]*rowsSeen{}
	}
	rows := s.seen[key]
	if rows == nil {
		words := (e.n + 63) / 64
		rows = &rowsSeen{make([]atomic.Uint64, words), make([]atomic.Uint64, words)}
		s.seen[key] = rows
	}
	return rows
}

// counted returns the decoder of picture i. It counts the picture.
func (e *examples) counted(d listing.Decoder, i int) listing.Decoder {
	if rows := e.sideways; rows != nil {
		d.Seen = func(sideways bool) {
			bit := uint64(1) << (i % 64)
			rows.read[i/64].Or(bit)
			if sideways {
				rows.sideways[i/64].Or(bit)
			}
		}
	}
	return d
}

// Note says how many pictures have an orientation that is not applied, or returns "".
func (s *Sideways) Note() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sideways, read := 0, 0
	for _, rows := range s.seen {
		for i := range rows.read {
			sideways += bits.OnesCount64(rows.sideways[i].Load())
			read += bits.OnesCount64(rows.read[i].Load())
		}
	}
	if sideways == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d pictures have an Exif orientation that is not applied, as by torchvision and timm. If training turned "+
		"them, as Hugging Face's datasets and OpenCV do: %s. If not, %s ends this note",
		sideways, read, setting.Fit.With(setting.Preprocess.With("orientation=apply")), setting.Preprocess.With("orientation=pillow"))
}
