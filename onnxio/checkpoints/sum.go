package checkpoints

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/swagwrap/swagwrap/onnxio"
)

// sumStretch is the number of bytes that are summed between two looks at the
// memory they take.
const sumStretch = 16 << 20

// Sum returns the SHA-256 of the model's file and, behind it, its data files, in
// hex. progress, if not nil, is told of the bytes read.
func Sum(m *onnxio.Model, progress func(bytes int)) string {
	h := sha256.New()
	for _, file := range m.Files() {
		for stretch := range slices.Chunk(file, sumStretch) {
			h.Write(stretch)
			m.Release()
			if progress != nil {
				progress(len(stretch))
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
