package numpy

import (
	"archive/zip"
	"io"

	"github.com/swagwrap/swagwrap/internal/file"
)

// signature is the comment of each .npz file that this program writes. Readers ignore it.
const signature = "swagwrap"

// NewArchive begins an .npz file that [Signed] recognises. Its arrays are files with names that end in .npy.
func NewArchive(w io.Writer) *zip.Writer {
	z := zip.NewWriter(w)
	z.SetComment(signature) // fails for a long text only
	return z
}

// Signed reports whether this program wrote the .npz file at path. A zip ends with its comment, after the comment's length
// in two bytes.
func Signed(path string) bool {
	f, info, err := file.Regular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	end := string([]byte{byte(len(signature)), 0}) + signature
	last := make([]byte, len(end))
	_, err = f.ReadAt(last, max(0, info.Size()-int64(len(last))))
	return err == nil && string(last) == end
}
