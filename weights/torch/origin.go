package torch

import (
	"archive/zip"
	"bytes"
	"strings"

	"github.com/swagwrap/swagwrap/weights"
)

// OriginOf returns [File.Origin] of the file at path. It reads the directory of the file only, and the file does not count
// as an input: see [weights.Peek]. It returns "" for files of other programs, and for files that it cannot read.
func OriginOf(path string) (origin string) {
	m, err := weights.Peek(path)
	if err != nil {
		return ""
	}
	defer m.Close()
	weights.Guarded(func() error { // another program may cut the file short: then nothing is known of it
		origin = originIn(m)
		return nil
	})()
	return origin
}

func originIn(m *weights.Mapping) string {
	switch {
	case isSafetensors(m.Data):
		if st, err := weights.ParseSafetensors(m.Path, m.Data); err == nil {
			return st.Metadata[originKey]
		}
	case isZip(m.Data):
		z, err := zip.NewReader(&bounded{data: bytes.NewReader(m.Data), left: maxDirectory}, int64(len(m.Data)))
		if err != nil {
			return ""
		}
		for _, f := range z.File {
			from, err := f.DataOffset()
			if err == nil && strings.HasSuffix(f.Name, "/"+originEntry) && f.Method == zip.Store && f.UncompressedSize64 <= maxOrigin &&
				from >= 0 && from+int64(f.UncompressedSize64) <= int64(len(m.Data)) {
				return string(m.Data[from:][:f.UncompressedSize64])
			}
		}
	}
	return ""
}
