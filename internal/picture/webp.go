package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"

	"golang.org/x/image/vp8"
	"golang.org/x/image/vp8l"
)

// webpFrame is the first frame of a WebP file. See https://developers.google.com/speed/webp/docs/riff_container.
type webpFrame struct {
	w, h     int             // size of the canvas
	at       image.Rectangle // place of the frame on the canvas
	lossless bool
	data     []byte // a VP8 or VP8L bit stream
}

// parseWebP finds the first frame. It replaces Go's webp package, which cannot read animations and decodes the alpha
// channel, which is not needed here.
func parseWebP(data []byte) (webpFrame, error) {
	var f webpFrame
	n := int64(binary.LittleEndian.Uint32(data[4:])) - int64(len("WEBP"))
	body := data[12:]
	if n < 0 || n > int64(len(body)) {
		return f, io.ErrUnexpectedEOF
	}
	body = body[:n]
	for {
		id, chunk, rest, err := nextChunk(body)
		if err != nil {
			return f, err
		}
		switch id {
		case "VP8X":
			if len(chunk) < 10 {
				return f, errors.New("short VP8X chunk")
			}
			f.w, f.h = 1+int24(chunk[4:]), 1+int24(chunk[7:])
		case "ANMF": // the chunks of a frame follow
			if len(chunk) < 16 {
				return f, errors.New("short ANMF chunk")
			}
			f.at.Min = image.Pt(2*int24(chunk), 2*int24(chunk[3:]))
			rest = chunk[16:]
		case "VP8 ", "VP8L":
			f.lossless = id == "VP8L"
			f.data = chunk
			return f, f.readSize()
		}
		body = rest
	}
}

// nextChunk cuts the first chunk off body.
func nextChunk(body []byte) (id string, chunk, rest []byte, err error) {
	if len(body) < 8 {
		return "", nil, nil, io.ErrUnexpectedEOF
	}
	id, n := string(body[:4]), int64(binary.LittleEndian.Uint32(body[4:]))
	body = body[8:]
	if n > int64(len(body)) {
		return "", nil, nil, io.ErrUnexpectedEOF
	}
	return id, body[:n], body[min(n+n%2, int64(len(body))):], nil
}

func int24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// readSize reads the size from the bit stream and checks that the frame lies on the canvas.
func (f *webpFrame) readSize() error {
	var w, h int
	if f.lossless {
		c, err := vp8l.DecodeConfig(bytes.NewReader(f.data))
		if err != nil {
			return err
		}
		w, h = c.Width, c.Height
	} else {
		d := vp8.NewDecoder()
		d.Init(bytes.NewReader(f.data), len(f.data))
		c, err := d.DecodeFrameHeader()
		if err != nil {
			return err
		}
		w, h = c.Width, c.Height
	}
	f.at.Max = f.at.Min.Add(image.Pt(w, h))
	if f.w == 0 {
		f.w, f.h = w, h
	}
	if canvas := image.Rect(0, 0, f.w, f.h); !f.at.In(canvas) {
		return fmt.Errorf("first frame at %v, want it on the canvas %v", f.at, canvas)
	}
	return nil
}

// openWebP opens a WebP file and decodes its first frame. If the frame is smaller than the canvas, the rest is black.
func openWebP(data []byte) (File, error) {
	f, err := parseWebP(data)
	return File{W: f.w, H: f.h, tag: webpOrientation(data), channels: 3, buffers: f.buffers(), decode: func() (Picture, error) {
		decode := decodeVP8
		if f.lossless {
			decode = decodeVP8L
		}
		p, err := decode(f.data)
		if err != nil || p.W == f.w && p.H == f.h {
			return p, err
		}
		canvas := New(f.w, f.h, 3)
		for y := range p.H {
			copy(canvas.Row(f.at.Min.Y + y)[3*f.at.Min.X:], p.Row(y))
		}
		return canvas, nil
	}}, err
}

// buffers returns about how many bytes decoding needs in addition to the canvas.
func (f *webpFrame) buffers() int64 {
	n := int64(f.at.Dx()) * int64(f.at.Dy())
	bytes := int64(len(f.data)) + n*3/2 // planes in whole blocks
	if f.lossless {
		bytes = n * 9 // the picture with alpha, a copy without its palette, and four transforms of a quarter each: 4 + 4 + 1 bytes
	}
	if f.at.Dx() != f.w || f.at.Dy() != f.h {
		bytes += 3 * n
	}
	return bytes
}

func decodeVP8L(data []byte) (Picture, error) {
	img, err := vp8l.Decode(bytes.NewReader(data))
	if err != nil {
		return Picture{}, err
	}
	return fromImage(img)
}

// decodeVP8 decodes a lossy frame. Its colours have limited range (luma 16 to 235). Chroma is enlarged by a triangle
// filter, as in libwebp.
func decodeVP8(data []byte) (Picture, error) {
	d := vp8.NewDecoder()
	d.Init(bytes.NewReader(data), len(data))
	if _, err := d.DecodeFrameHeader(); err != nil {
		return Picture{}, err
	}
	m, err := d.DecodeFrame()
	if err != nil {
		return Picture{}, err
	}
	p := New(m.Rect.Dx(), m.Rect.Dy(), 3)
	cw, ch := (p.W+1)/2, (p.H+1)/2
	us, vs := make([]byte, 2*cw), make([]byte, 2*cw)
	for y := range p.H {
		near := y / 2 // the nearest row of chroma, and then the next nearest
		far := max(0, min(near-1+y%2*2, ch-1))
		webpChroma(us, m.Cb[near*m.CStride:][:cw], m.Cb[far*m.CStride:][:cw])
		webpChroma(vs, m.Cr[near*m.CStride:][:cw], m.Cr[far*m.CStride:][:cw])
		row := p.Row(y)
		for x, l := range m.Y[y*m.YStride:][:p.W] {
			l, u, v := int32(l)*19077>>8, int32(us[x]), int32(vs[x])
			d := row[3*x : 3*x+3 : 3*x+3]
			d[0] = clip((l + v*26149>>8 - 14234) >> 6)
			d[1] = clip((l - u*6419>>8 - v*13320>>8 + 8708) >> 6)
			d[2] = clip((l + u*33050>>8 - 17685) >> 6)
		}
	}
	return p, nil
}

// webpChroma doubles the length of a row of chroma, from the nearest row (weight 3/4) and the next nearest (1/4). It
// follows UPSAMPLE_FUNC of libwebp's src/dsp/upsampling.c, with its two roundings.
func webpChroma(dst, near, far []byte) {
	n, f := uint32(near[0]), uint32(far[0])
	dst[0] = byte((3*n + f + 2) >> 2)
	for x := 1; x < len(near); x++ {
		n2, f2 := uint32(near[x]), uint32(far[x])
		sum := n + n2 + f + f2 + 8
		falling, rising := (sum+2*(n2+f))>>3, (sum+2*(n+f2))>>3 // the two diagonals
		dst[2*x-1] = byte((falling + n) >> 1)
		dst[2*x] = byte((rising + n2) >> 1)
		n, f = n2, f2
	}
	dst[2*len(near)-1] = byte((3*n + f + 2) >> 2)
}
