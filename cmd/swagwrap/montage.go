package main

import (
	"fmt"
	"image"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/report"
)

// A drawing may take 1 GiB; a hundred images for each section need a fifth.
const (
	defaultTiles = 12
	maxTiles     = 100
)

var montageFlags = []cli.Flag{
	&cli.StringFlag{Name: "montage", Usage: "show the most and the least certain images with their predictions in `FILE`: .html or .png"},
	&cli.IntFlag{Name: "montage-images", Value: defaultTiles, Usage: fmt.Sprintf("show `N` images of each kind there, at most %d", maxTiles)},
}

// montage picks examples while they are scored, and shows them when all are.
type montage struct {
	*report.Selection
	write func(*report.Montage, io.Writer) error
	data  dataset.Dataset
	view  view
}

// newMontage reads the flags. It returns nil if no montage is asked for, and
// fails if data holds no images: before the work, not after it.
func newMontage(c *cli.Context, data dataset.Dataset, p dataset.Preprocess) (*montage, error) {
	path, n := c.String("montage"), c.Int("montage-images")
	if path == "" {
		if c.IsSet("montage-images") {
			return nil, usagef("say where they are shown: --montage FILE.html", "--montage-images without --montage")
		}
		return nil, nil
	}
	if n < 1 || n > maxTiles {
		return nil, usagef("", "--montage-images %d: want 1 to %d", n, maxTiles)
	}
	m := &montage{Selection: report.NewSelection(n), data: data}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".html", ".htm":
		m.write = (*report.Montage).WriteHTML
	case ".png":
		m.write = (*report.Montage).WritePNG
	default:
		return nil, usagef("", "--montage %s: unknown format %q, want .html or .png", path, ext)
	}
	var err error
	if m.view, err = newView(data, p); err != nil {
		return nil, usagef("leave out --montage", "--montage: %s: %w", data.Sources()[0].Path, err)
	}
	return m, nil
}

// show writes the montage of what was added. Images are read once more. The
// title and the note say which ensemble and which data it is.
func (m *montage) show(w io.Writer, title, note string, classes []string) error {
	return m.write(&report.Montage{
		Title: title, Note: note, Classes: classes, Sections: m.Sections(),
		Name:  m.data.Name,
		Image: func(i int) (image.Image, error) { return m.view.image(m.data, i) },
	}, w)
}

// view turns examples back into images: what the network sees, as a person does.
type view struct {
	pre     dataset.Preprocess // Channels and Layout are known
	w, h, c int
}

func newView(data dataset.Dataset, p dataset.Preprocess) (view, error) {
	shape := slices.Clone(data.Shape())
	if len(shape) == 2 {
		shape = slices.Insert(shape, 0, 1) // an array of grey images
	}
	p.Image = dataset.Transform{} // was applied already, and does not say what the shape means
	p, err := p.Resolve(shape)
	if err != nil {
		return view{}, fmt.Errorf("examples of shape %d cannot be shown: %w", data.Shape(), err)
	}
	v := view{pre: p, c: int(shape[0]), h: int(shape[1]), w: int(shape[2])}
	if p.Layout == "nhwc" {
		v.h, v.w, v.c = int(shape[0]), int(shape[1]), int(shape[2])
	}
	return v, nil
}

func (v view) image(data dataset.Dataset, i int) (image.Image, error) {
	pixels := make([]byte, v.w*v.h*v.c)
	if b, ok := data.(dataset.Bytes); ok {
		if err := b.Pixels(pixels, i); err != nil {
			return nil, err
		}
		return v.arrange(pixels), nil
	}
	values := make([]float32, len(pixels))
	if err := data.Read(values, i); err != nil {
		return nil, err
	}
	v.unnormalize(values)
	quantize(pixels, values)
	return v.arrange(pixels), nil
}

// at returns where channel c of pixel i lies in an example.
func (v view) at(i, c int) int {
	if v.pre.Layout == "nhwc" {
		return i*v.c + c
	}
	return c*v.w*v.h + i
}

// arrange makes an image of values in the network's layout and order of channels.
func (v view) arrange(pixels []byte) image.Image {
	r := image.Rect(0, 0, v.w, v.h)
	if v.c == 1 {
		return &image.Gray{Pix: pixels, Stride: v.w, Rect: r}
	}
	red, blue := 0, 2
	if v.pre.Channels == "bgr" {
		red, blue = 2, 0
	}
	img := image.NewRGBA(r)
	for i := range v.w * v.h {
		img.Pix[4*i] = pixels[v.at(i, red)]
		img.Pix[4*i+1] = pixels[v.at(i, 1)]
		img.Pix[4*i+2] = pixels[v.at(i, blue)]
		img.Pix[4*i+3] = 255
	}
	return img
}

// unnormalize takes mean and standard deviation out of what Read gave.
func (v view) unnormalize(values []float32) {
	of := func(list []float64, c int, unset float64) float32 {
		switch len(list) {
		case 0:
			return float32(unset)
		case 1:
			return float32(list[0])
		}
		if v.pre.Channels == "bgr" { // lists are red, green, blue
			c = v.c - 1 - c
		}
		return float32(list[c])
	}
	for c := range v.c {
		mean, std := of(v.pre.Mean, c, 0), of(v.pre.Std, c, 1)
		for i := range v.w * v.h {
			at := v.at(i, c)
			values[at] = values[at]*std + mean
		}
	}
}

// quantize makes bytes of values in [0, 1]. Values beyond were normalised before
// they were stored: then the smallest becomes black and the largest white.
func quantize(pixels []byte, values []float32) {
	lo, hi := float64(slices.Min(values)), float64(slices.Max(values))
	const rounding = 1e-5 // of taking the normalisation out again
	if lo >= -rounding && hi <= 1+rounding {
		lo, hi = 0, 1
	}
	for i, x := range values {
		part := 0.5
		if hi > lo {
			part = (float64(x) - lo) / (hi - lo)
		}
		pixels[i] = byte(255*min(max(part, 0), 1) + 0.5)
	}
}

func (a *app) showMontage(c *cli.Context, job *scoreJob) error {
	if job.montage == nil {
		return nil
	}
	out, err := createOutput(c.String("montage"), true)
	if err != nil {
		return err
	}
	defer out.abort()
	title := fmt.Sprintf("%s, %s", job.ensemble.Path, plural(job.ensemble.Members(), "member"))
	note := fmt.Sprintf("%s: %s", strings.Join(c.Args().Tail(), " "), plural(job.summary.rows, "image"))
	if err := job.montage.show(out, title, note, job.schema.ClassNames); err != nil {
		return badOutput(err)
	}
	return out.commit()
}
