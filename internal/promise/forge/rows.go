package forge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/swagwrap/swagwrap/internal/promise"
	"github.com/swagwrap/swagwrap/weights"
)

// Rows is the content of a file of package records: its first line, its head in JSON, and the contents of its frames.
type Rows struct {
	Magic, Head []byte
	Frames      [][]byte
}

// OpenRows takes apart the file in b, which must be valid.
func OpenRows(b []byte) (*Rows, error) {
	at := bytes.IndexByte(b, '\n') + 1
	f := &Rows{Magic: b[:at:at]}
	for rest := b[at:]; len(rest) > 12; {
		end := 12 + int(binary.LittleEndian.Uint64(rest))
		f.Frames = append(f.Frames, rest[12:end:end])
		rest = rest[end:]
	}
	if len(f.Frames) == 0 {
		return nil, fmt.Errorf("%.40q is no file of rows", b)
	}
	f.Head, f.Frames = f.Frames[0], f.Frames[1:]
	return f, nil
}

// Bytes puts the file together, with valid checksums.
func (f *Rows) Bytes() []byte {
	b := slices.Clone(f.Magic)
	for _, frame := range slices.Concat([][]byte{f.Head}, f.Frames) {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(frame)))
		b = binary.LittleEndian.AppendUint32(b, weights.CRC32C(0, frame))
		b = append(b, frame...)
	}
	return b
}

// Mutated returns a copy of the file with some changes in its head or in a frame.
func (f *Rows) Mutated(r *rand.Rand) *Rows {
	m := &Rows{f.Magic, f.Head, slices.Clone(f.Frames)}
	if len(m.Frames) == 0 || r.IntN(3) > 0 {
		m.Head = promise.Mutate(r, m.Head)
		return m
	}
	k := r.IntN(len(m.Frames))
	frame := slices.Clone(m.Frames[k])
	for range 1 + r.IntN(3) {
		at := r.IntN(len(frame) + 1)
		end := min(len(frame), at+1+r.IntN(40))
		switch r.IntN(4) {
		case 0: // a length or a label
			v := []uint32{0, 1, 13, 1 << 20, 1 << 31, 1<<32 - 1}[r.IntN(6)]
			copy(frame[at:], binary.LittleEndian.AppendUint32(nil, v))
		case 1:
			frame = slices.Delete(frame, at, end)
		case 2:
			frame = slices.Insert(frame, at, make([]byte, r.IntN(100))...)
		default:
			for i := range frame[at:end] {
				frame[at+i] ^= []byte{1, 0x80, 0xff}[r.IntN(3)]
			}
		}
	}
	m.Frames[k] = frame
	return m
}
