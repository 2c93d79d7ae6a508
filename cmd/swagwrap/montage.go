package main

import (
	"fmt"
	"image"
	"image/png"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/maps"
	"github.com/swagwrap/swagwrap/internal/montage"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/summary"
	"github.com/swagwrap/swagwrap/internal/task"
)

// tiles is the number of images of each kind.
const tiles = 12

// shownClasses is the number of classes in a tile, with their probabilities.
const shownClasses = 3

// scoreMontage picks examples while they are scored, and draws them at the end.
type scoreMontage struct {
	*montage.Montage
	task task.Pictured // set before the first row
	data dataset.Dataset
	view preprocess.View
	maps *mapWriter // the maps of a segmentation, or nil
}

// newMontage reads the flags. It returns nil if no montage is wanted. It fails before the work begins if data holds no
// images.
func newMontage(path string, data dataset.Dataset, p preprocess.Settings) (*scoreMontage, error) {
	if path == "" {
		return nil, nil
	}
	m := &scoreMontage{Montage: montage.New(tiles), data: data}
	m.Name, m.Image = data.Name, m.image
	if ext := strings.ToLower(filepath.Ext(path)); ext != ".html" && ext != ".htm" {
		return nil, console.Usagef("", "--montage %s: unknown format %q, want .html", path, ext)
	}
	var err error
	if m.view, err = p.View(data.Shape()); err != nil {
		return nil, console.Usagef("leave out --montage", "--montage: %s: %w", data.Sources()[0].Path, err)
	}
	return m, nil
}

// withMaps makes the montage show the maps of pixels beside each picture. It reads them from the folder of --maps.
func (m *scoreMontage) withMaps(w *mapWriter) error {
	if w == nil || w.format != "png" {
		return console.Usagef("add --maps FOLDER", "--montage of a segmentation shows its maps, which --maps FOLDER writes as PNG")
	}
	m.maps, m.Image = w, m.panels
	return nil
}

func (m *scoreMontage) panels(i int) (image.Image, error) {
	img, err := m.image(i)
	if err != nil {
		return nil, err
	}
	stem := m.maps.names.Stem(m.data.Name(i))
	classes, err := readPNG(m.maps.files.Unfinished(stem + ".png"))
	if err != nil {
		return nil, err
	}
	var heat [2]image.Image
	for k, name := range []string{"predictive_entropy", "mutual_information"} {
		if heat[k], err = readPNG(m.maps.files.Unfinished(stem + "." + name + ".png")); err != nil {
			return nil, err
		}
	}
	label, err := m.data.Labels().Load(i)
	if err != nil {
		return nil, err
	}
	indexed, ok := classes.(*image.Paletted)
	if !ok {
		return nil, fmt.Errorf("%s.png: another file took the place of the map", stem)
	}
	return maps.Panels(img, indexed, heat[0], heat[1], label.Classes), nil
}

func readPNG(path string) (image.Image, error) {
	f, _, err := file.Regular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return png.Decode(f)
}

// image returns example i as an image for display.
func (m *scoreMontage) image(i int) (image.Image, error) {
	size, err := dataset.SizeOf(m.data)
	if err != nil {
		return nil, err
	}
	if b, ok := m.data.(dataset.Bytes); ok {
		pixels := make([]byte, size.Floats)
		if err := b.Pixels(pixels, i); err != nil {
			return nil, err
		}
		return m.view.Bytes(pixels).Image(), nil
	}
	values := size.Make(1)
	if err := m.data.Read(values, i); err != nil {
		return nil, err
	}
	return m.view.Floats(values.Floats).Image(), nil
}

// drawMontage draws the montage of all rows, if one is asked for. It appears together with the result.
func drawMontage(job *scoreJob) (*console.Output, error) {
	if job.shown == nil {
		return nil, nil
	}
	out, err := console.CreateOutput(job.montage, true)
	if err != nil {
		return nil, err
	}
	m := job.shown
	m.Title = fmt.Sprintf("%s, %s", job.Ensemble.Path, report.Plural(job.Ensemble.Members(), "member"))
	m.Note = fmt.Sprintf("%s: %s", strings.Join(job.data, " "), report.Plural(job.summary.Rows, "image"))
	if e := job.summary.Expected(); e != nil {
		m.Note += ". " + strings.Join(append([]string{e.Title() + ": " + summary.Expect(e.All)}, e.GroupLines()...), ";")
	}
	m.Words = m.task.Selection()
	if err := m.WriteHTML(out); err != nil {
		out.Abort()
		return nil, console.BadOutput(err)
	}
	return out, nil
}
