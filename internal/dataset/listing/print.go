package listing

import (
	"hash/maphash"
	"os"
)

// Bytes returns the size of the example's bytes, or 0 if nobody knows it. It reads nothing.
func (e *Example) Bytes() int64 {
	switch in := e.in; {
	case e.unlisted() != nil:
		return 0
	case in != nil && in.listed != nil:
		return in.listed[e.at].size
	case in != nil && in.tar:
		return in.entries[e.at].size
	}
	info, err := os.Stat(e.Path())
	if err != nil {
		return 0
	}
	return info.Size()
}

// Block is the number of bytes at the start, in the middle and at the end of an example that identify it, together with
// its size.
const Block = 16 << 10

// Print adds what identifies the content of the example to a hash.
func (e *Example) Print(h *maphash.Hash) error {
	f, release, off, size, err := e.Open()
	if err != nil {
		return err
	}
	defer release()
	for _, at := range Blocks(size) {
		b := make([]byte, at[1]-at[0])
		if _, err := f.ReadAt(b, off+at[0]); err != nil {
			return err
		}
		h.Write(b)
	}
	return nil
}

// Blocks returns the begin and end of each block of so many bytes.
func Blocks(size int64) (all [][2]int64) {
	if size <= 3*Block {
		return [][2]int64{{0, size}}
	}
	for _, at := range []int64{0, (size - Block) / 2, size - Block} {
		all = append(all, [2]int64{at, at + Block})
	}
	return all
}
