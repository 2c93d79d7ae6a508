package main

import (
	"encoding/binary"
	"image"
	"image/color"
	"image/color/palette"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/task"
)

var mapsFlag = &cli.StringFlag{Name: "maps", Usage: "also write, for each picture of a segmentation, the predicted class, confidence, entropy and mutual information of every pixel into `FOLDER`, as PNG: the class as index, and other maps in 16 bits from 0 to the largest possible value. npy=FOLDER writes arrays"}

// mapWriter writes the maps of the pixels of each picture.
type mapWriter struct {
	folder, format string
	roots          []string // folders that the names of pictures begin with
	force          bool
}

// newMaps reads the flag. It returns nil if no maps are wanted.
func newMaps(c *cli.Context, data []string) (*mapWriter, error) {
	if !c.IsSet("maps") {
		return nil, nil
	}
	w := &mapWriter{folder: c.String("maps"), format: "png", force: c.Bool("force") || c.Bool("resume") || c.IsSet("part")}
	if folder, arrays := strings.CutPrefix(w.folder, "npy="); arrays {
		w.folder, w.format = folder, "npy"
	}
	for _, path := range data {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			w.roots = append(w.roots, filepath.Clean(path)+string(filepath.Separator))
		}
	}
	if entries, err := os.ReadDir(w.folder); err == nil && len(entries) > 0 && !w.force {
		return nil, flags.Usagef("--force overwrites maps in it", "%s: exists already, and is not empty", w.folder)
	}
	return w, nil
}

// write writes the maps of one picture. t describes its pixels.
func (w *mapWriter) write(name string, t task.Dense, r *task.Reading) error {
	sides := t.Spec().Sides
	if sides[1] == 0 || sides[2] != 0 {
		return flags.Usagef("leave out --maps: .jsonl has what is said of each token", "--maps: the network scores %d positions in one line, and maps have two axes", t.Spec().Positions)
	}
	stem := filepath.Join(w.folder, w.stem(name))
	if err := os.MkdirAll(filepath.Dir(stem), 0o777); err != nil {
		return flags.BadOutput(err)
	}
	for k, c := range r.Channels {
		if c.Hidden || c.Name == "nll" || c.Name == "brier" || c.Name == "expected_entropy" {
			continue // the difference of two others, or only of labelled pixels
		}
		path, values := stem+"."+c.Name, r.Maps[k]
		if c.Kind == task.Class {
			path = stem
		}
		if err := w.file(path+"."+w.format, sides, t, c, values); err != nil {
			return err
		}
	}
	return nil
}

// stem returns the path of a picture's maps below the folder, without an extension.
func (w *mapWriter) stem(name string) string {
	name = filepath.Clean(name)
	for _, root := range w.roots {
		if rest, ok := strings.CutPrefix(name, root); ok {
			name = rest
			break
		}
	}
	if i := strings.LastIndex(name, "["); i >= 0 && strings.HasSuffix(name, "]") { // row of an array
		base := filepath.Base(name[:i])
		return strings.TrimSuffix(base, filepath.Ext(base)) + "-" + name[i+1:len(name)-1]
	}
	parts := slices.DeleteFunc(strings.Split(filepath.ToSlash(name), "/"), func(p string) bool { return p == ".." || p == "" })
	name = filepath.Join(parts...)
	return strings.TrimSuffix(name, filepath.Ext(name))
}

func (w *mapWriter) file(path string, sides [3]int, t task.Dense, c task.Column, values []float32) error {
	out, err := flags.CreateOutput(path, w.force)
	if err != nil {
		return err
	}
	defer out.Abort()
	if w.format == "npy" {
		err = writeArray(out, sides, c, values)
	} else {
		err = png.Encode(out, picture(sides, t, c, values))
	}
	if err != nil {
		return flags.BadOutput(err)
	}
	return flags.Commit(out)
}

func writeArray(out *flags.Output, sides [3]int, c task.Column, values []float32) error {
	dtype, b := "<f4", []byte(nil)
	if c.Kind == task.Class {
		dtype = "<u2"
	}
	b = append(b, numpy.Header(dtype, sides[0], sides[1])...)
	for _, v := range values {
		if c.Kind == task.Class {
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	_, err := out.Write(b)
	return err
}

// picture returns a map as a picture. Classes are the indices of a palette. Other values are grey levels of 16 bits, as
// shares of the largest possible value: 1 for probabilities, log C for entropies of C classes.
func picture(sides [3]int, t task.Dense, c task.Column, values []float32) image.Image {
	box := image.Rect(0, 0, sides[1], sides[0])
	classes := t.About().Classes
	if c.Kind == task.Class && classes <= 256 {
		p := image.NewPaletted(box, classColours(classes))
		for i, v := range values {
			p.Pix[i] = uint8(v)
		}
		return p
	}
	p, scale := image.NewGray16(box), float64(math.MaxUint16)
	if strings.Contains(c.Name, "entropy") || strings.Contains(c.Name, "information") {
		scale /= math.Log(float64(max(2, classes)))
	}
	if c.Kind == task.Class {
		scale = 1
	}
	for i, v := range values {
		p.SetGray16(i%sides[1], i/sides[1], color.Gray16{Y: uint16(math.Round(min(max(float64(v)*scale, 0), math.MaxUint16)))})
	}
	return p
}

// classColours returns a colour for each class. The first is black, since class 0 is often the background.
func classColours(classes int) (colours color.Palette) {
	colours = append(colours, color.Black)
	for i := 1; i < classes; i++ {
		colours = append(colours, palette.Plan9[(i*97+31)%256]) // neighbours in number differ in colour
	}
	return colours
}
