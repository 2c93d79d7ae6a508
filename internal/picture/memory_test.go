package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// tiffOf makes a little-endian TIFF file of one page from tags of type LONG, behind
// whose header data lies.
func tiffOf(data []byte, tags ...[2]uint32) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("II*\x00"), uint32(8+len(data)))
	b = append(b, data...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(tags)))
	for _, t := range tags {
		b = binary.LittleEndian.AppendUint16(b, uint16(t[0]))
		b = binary.LittleEndian.AppendUint16(b, 4)
		b = binary.LittleEndian.AppendUint32(b, 1)
		b = binary.LittleEndian.AppendUint32(b, t[1])
	}
	return append(b, 0, 0, 0, 0)
}

// TestMemory: decoding takes no more than the header announced, of any kind.
func TestMemory(t *testing.T) {
	files := map[string][]byte{}
	entries, err := os.ReadDir(filepath.Join(pictures, "files"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files[e.Name()] = readPicture(t, "files/"+e.Name())
	}
	// A strip that unpacks to eight times the pixels.
	const w, h = 2000, 2000
	var strip bytes.Buffer
	z := zlib.NewWriter(&strip)
	z.Write(make([]byte, 8*w*h))
	z.Close()
	files["strip.tif"] = tiffOf(strip.Bytes(), [2]uint32{256, w}, [2]uint32{257, h}, [2]uint32{258, 8}, [2]uint32{259, 8}, [2]uint32{262, 1},
		[2]uint32{273, 8}, [2]uint32{279, uint32(strip.Len())})
	for name, data := range files {
		for _, grey := range []bool{false, true} {
			f, err := Open(data)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			printed := f.Memory(grey)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = f.Decode(grey)
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			// What is allocated in all, freed or not: small tables and readers of strips too.
			const tables = 2 << 20
			if took := int64(after.TotalAlloc - before.TotalAlloc); took > printed*5/4+4*int64(len(data))+tables {
				t.Errorf("%s: %d bytes, said %d", name, took, printed)
			}
			if printed < int64(f.W)*int64(f.H) || printed > 64*int64(f.W)*int64(f.H)+4096*3*int64(len(data)) {
				t.Errorf("%s: %d bytes for %d×%d pixels", name, printed, f.W, f.H)
			}
		}
	}
}

// TestUnreadTIFF: what Pillow reads and this package does not is called by its name.
func TestUnreadTIFF(t *testing.T) {
	for want, tag := range map[string][2]uint32{
		"TIFF: CMYK colours, which are not read: convert it to RGB": {tagPhotometric, 5},
		"TIFF: YCbCr colours, which are not read: convert":          {tagPhotometric, 6},
		"TIFF: JPEG compression, which is not read: save it with":   {tagCompression, 7},
		"TIFF: Zstandard compression, which is not read: save it":   {tagCompression, 50000},
	} {
		if _, err := Open(tiffOf(nil, [2]uint32{256, 1}, [2]uint32{257, 1}, tag)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
