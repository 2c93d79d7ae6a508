package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"strconv"
)

// netpbmMagic are the first bytes of PGM (P2, P5) and PPM (P3, P6) files.
func netpbmMagic() (all []string) {
	for _, kind := range []string{"P2", "P3", "P5", "P6"} {
		for _, space := range []string{"\n", " ", "\r", "\t"} {
			all = append(all, kind+space)
		}
	}
	return all
}

// A netpbm is a PGM or PPM file. P2 and P3 hold numbers as text, P5 and P6 as bytes.
type netpbm struct {
	text     bool
	channels int
	w, h     int
	most     int    // the number of white
	data     []byte // behind the header
}

// openNetpbm reads the header of a PGM or PPM file.
func openNetpbm(data []byte) (File, error) {
	n, err := readNetpbm(data)
	if err != nil {
		return File{}, err
	}
	f := File{W: n.w, H: n.h, channels: n.channels, decode: n.decode, buffers: 2 * int64(n.w) * int64(n.h) * int64(n.channels)}
	if n.channels == 1 {
		f.image, f.scale = n.levels, 1
	}
	return f, nil
}

func readNetpbm(data []byte) (*netpbm, error) {
	n := &netpbm{text: data[1] == '2' || data[1] == '3', channels: 1, data: data[2:]}
	if data[1] == '3' || data[1] == '6' {
		n.channels = 3
	}
	for _, to := range []*int{&n.w, &n.h, &n.most} {
		token, err := n.token()
		if err != nil {
			return nil, err
		}
		if *to, err = strconv.Atoi(token); err != nil {
			return nil, fmt.Errorf("header: %q, want a number", token)
		}
	}
	if n.most < 1 || n.most > math.MaxUint16 {
		return nil, fmt.Errorf("header: white is %d, want 1 to %d", n.most, math.MaxUint16)
	}
	return n, nil
}

// token returns the next word of the header, and the single space behind it is read too. A comment goes from # to the end of the
// line.
func (n *netpbm) token() (string, error) {
	const most = 10 // digits, as in Pillow
	var token []byte
	for len(n.data) > 0 && len(token) <= most {
		c := n.data[0]
		n.data = n.data[1:]
		switch {
		case c == '#':
			end := bytes.IndexAny(n.data, "\r\n")
			if end < 0 {
				end = len(n.data) - 1
			}
			n.data = n.data[end+1:]
		case isSpace(c) && len(token) > 0:
			return string(token), nil
		case !isSpace(c):
			token = append(token, c)
		}
	}
	if len(n.data) == 0 {
		return "", io.ErrUnexpectedEOF
	}
	return "", fmt.Errorf("header: %.20q…, want a number", token)
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// numbers returns the numbers of all pixels, as the file has them.
func (n *netpbm) numbers() ([]uint16, error) {
	count := n.w * n.h * n.channels // CheckSize has bounded it
	least := count                  // bytes that a file of so many numbers has
	switch {
	case n.text:
		least = 2*count - 1
	case n.most > math.MaxUint8:
		least = 2 * count
	}
	if len(n.data) < least {
		return nil, io.ErrUnexpectedEOF
	}
	if n.text {
		return n.words(count)
	}
	out := make([]uint16, count)
	for i := range out {
		if n.most > math.MaxUint8 {
			out[i] = binary.BigEndian.Uint16(n.data[2*i:])
		} else {
			out[i] = uint16(n.data[i])
		}
	}
	return out, nil
}

// words reads numbers that are written as text.
func (n *netpbm) words(count int) ([]uint16, error) {
	out := make([]uint16, 0, count)
	rest := n.data
	var word []byte
	for len(out) < count {
		word = word[:0]
		for len(rest) > 0 {
			c := rest[0]
			rest = rest[1:]
			if c == '#' {
				end := bytes.IndexAny(rest, "\r\n")
				if end < 0 {
					end = len(rest) - 1
				}
				rest = rest[end+1:]
				continue
			}
			if isSpace(c) {
				if len(word) > 0 {
					break
				}
				continue
			}
			if word = append(word, c); len(word) > 10 {
				return nil, fmt.Errorf("%.20q…, want a number", word)
			}
		}
		if len(word) == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		v, err := strconv.Atoi(string(word))
		if err != nil || v < 0 || v > n.most {
			return nil, fmt.Errorf("%q, want a number from 0 to %d", word, n.most)
		}
		out = append(out, uint16(v))
	}
	return out, nil
}

// decode returns 8-bit pixels as Pillow does. Grey levels above 8 bits become 16-bit numbers first, which Pillow clips at 255.
func (n *netpbm) decode() (Picture, error) {
	values, err := n.numbers()
	if err != nil {
		return Picture{}, err
	}
	p := New(n.w, n.h, n.channels)
	white := 255.0
	if n.channels == 1 && n.most > math.MaxUint8 {
		white = math.MaxUint16
	}
	for i, v := range values {
		scaled := float64(v)
		if float64(n.most) != white {
			scaled = math.RoundToEven(float64(v) / float64(n.most) * white)
		}
		p.Pix[i] = byte(min(scaled, 255))
	}
	return p, nil
}

// levels returns the numbers of grey pixels, not scaled.
func (n *netpbm) levels() (image.Image, error) {
	values, err := n.numbers()
	if err != nil {
		return nil, err
	}
	r := image.Rect(0, 0, n.w, n.h)
	if n.most > math.MaxUint8 {
		img := image.NewGray16(r)
		for i, v := range values {
			binary.BigEndian.PutUint16(img.Pix[2*i:], v)
		}
		return img, nil
	}
	img := image.NewGray(r)
	for i, v := range values {
		if int(v) > n.most {
			return nil, errors.New("a number above that of white")
		}
		img.Pix[i] = byte(v)
	}
	return img, nil
}
