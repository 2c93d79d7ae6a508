package listing

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sync/semaphore"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/picture"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// File returns the file at a path as an example.
func File(path string) *Example { return &Example{name: path} }

// A Decoder says how pictures and masks are decoded.
type Decoder struct {
	*Budget
	// Orientation says which files are turned as their tag of orientation says. Empty stands for Pillow's rule.
	Orientation picture.Orientation
	// Seen, if not nil, is called for each picture that was decoded. sideways says that it has an orientation that Pillow
	// does not apply.
	Seen func(sideways bool)
}

// Picture decodes the example and calls use with it. Its memory belongs to the budget until use returns.
func (e *Example) Picture(d Decoder, grey bool, use func(picture.Picture) error) error {
	return e.read(d, func(header picture.File, size int64) error {
		return d.Decode(decoding(header), size, header.Memory(grey), func() error {
			p, err := header.Decode(grey)
			if err != nil {
				return err
			}
			if d.Seen != nil {
				d.Seen(header.Sideways())
			}
			return use(p)
		})
	})
}

// Levels calls use with the numbers of the example's pixels; see [picture.File.Levels]. more is the memory that use
// takes, in bytes.
func (e *Example) Levels(d Decoder, more int64, use func(picture.Levels) error) error {
	return e.read(d, func(header picture.File, size int64) error {
		return d.Decode(decoding(header), size, header.LevelsMemory()+more, func() error {
			levels, err := header.Levels()
			if err != nil {
				return err
			}
			return use(levels)
		})
	})
}

func decoding(header picture.File) string {
	return fmt.Sprintf("decoding %d×%d pixels", header.W, header.H)
}

// Size returns the width and the height of the decoded picture, from its header.
func (e *Example) Size(d Decoder) (w, h int, err error) {
	const enough = 1 << 16 // bytes that have the header of nearly every picture
	f, release, off, size, err := e.Open()
	if err != nil {
		return 0, 0, err
	}
	if size > enough {
		head := make([]byte, enough)
		if _, err := f.ReadAt(head, off); err == nil {
			// An orientation that counts may lie behind the pixels.
			if header, err := picture.Open(head); err == nil && d.Orientation != picture.Apply {
				release()
				header = header.Oriented(d.Orientation)
				return header.W, header.H, nil
			}
		}
	}
	release()
	err = e.read(d, func(header picture.File, _ int64) error {
		w, h = header.W, header.H
		return nil
	})
	return w, h, err
}

// read reads the bytes of the example into the budget's memory, and calls use with its header and the number of bytes.
func (e *Example) read(d Decoder, use func(header picture.File, size int64) error) error {
	f, release, off, size, err := e.Open()
	if err != nil {
		return err
	}
	defer release()
	if size > d.all {
		return &MemoryError{What: "reading a file of this size", Bytes: size, Limit: d.all}
	}
	// A goroutine waits for decoding memory only while it holds file memory, never the reverse, so there is no
	// deadlock.
	defer d.files.take(size)()
	header, err := header(f, off, size)
	if err != nil {
		return err
	}
	return use(header.Oriented(d.Orientation), size)
}

func header(f *os.File, off, size int64) (picture.File, error) {
	data := make([]byte, size)
	if _, err := io.ReadFull(io.NewSectionReader(f, off, size), data); err != nil {
		return picture.File{}, file.Cause(file.Truncated(err))
	}
	return picture.Open(data)
}

// A Budget limits the memory that all goroutines hold at once while they read pictures and masks. A quarter is for
// files, and the rest for decoding them. A picture that needs more than a share, but not more than the whole budget,
// gets the share alone.
type Budget struct {
	all             int64 // bytes
	files, decoding share
	// large is a number of bytes. The garbage collector runs after decoding a picture that needs at least as many.
	// Otherwise half as much memory again would pile up.
	large int64
}

// NewBudget returns a budget of so many bytes, or for 0 of what a command without a limit has.
func NewBudget(bytes int64) *Budget {
	all := cmp.Or(max(0, bytes), (*memory.Budget)(nil).Decoding())
	files := max(all/4, 1)
	return &Budget{all: all, files: newShare(files), decoding: newShare(max(all-files, 1)), large: all / 8}
}

// Decode calls f while n bytes are taken for decoding. held is the size of the file, if its bytes are in memory too. It
// fails if both are more than the whole budget. The error names the operation.
func (b *Budget) Decode(what string, held, n int64, f func() error) error {
	if n > b.all-held {
		return &MemoryError{What: what, Bytes: held + n, Limit: b.all}
	}
	defer b.decoding.take(n)()
	if n >= b.large {
		defer runtime.GC()
	}
	return f()
}

type share struct {
	*semaphore.Weighted
	size int64
}

func newShare(size int64) share { return share{semaphore.NewWeighted(size), size} }

// take waits for n bytes, or for the whole share if n is larger. The returned function gives them back.
func (s share) take(n int64) func() {
	n = min(n, s.size)
	s.Acquire(context.Background(), n) // cannot fail: n is at most the share, and there is no deadline
	return func() { s.Release(n) }
}

// MemoryError is the error for a picture that needs more memory than the limit.
type MemoryError struct {
	What         string // the operation that needs it
	Bytes, Limit int64
}

func (e *MemoryError) Error() string {
	mebibytes := func(n int64) int64 { return (n + 1<<20 - 1) >> 20 }
	return fmt.Sprintf("%s takes %d MiB, want at most %d: %s allows it", e.What, mebibytes(e.Bytes), e.Limit>>20,
		setting.Memory.With(fmt.Sprintf("%dM", mebibytes(e.Bytes))))
}
