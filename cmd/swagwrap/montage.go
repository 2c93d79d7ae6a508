package main

import (
	"fmt"
	"image"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/task"
)

// A drawing may take 1 GiB. With a hundred images in each section it takes a fifth of that.
const (
	defaultTiles = 12
	maxTiles     = 100
)

var montageFlags = []cli.Flag{
	&cli.StringFlag{Name: "montage", Usage: "show the most and the least certain images with their predictions in `FILE`: .html or .png"},
	&cli.IntFlag{Name: "montage-images", Value: defaultTiles, Usage: fmt.Sprintf("show `N` images of each kind there, at most %d", maxTiles)},
}

// montage selects examples while they are scored, and draws them at the end.
type montage struct {
	*report.Selection
	write func(*report.Montage, io.Writer) error
	data  dataset.Dataset
	view  preprocess.View
	// legend explains the tiles. It is "" for the legend of classes.
	legend string
}

// of sets the selection and the explanations for the task.
func (m *montage) of(t task.Task) {
	if t, ok := t.(task.Pictured); ok && m != nil {
		s := t.Selection()
		m.Words, m.legend = s.Sections, s.Legend
	}
}

// told converts a tile to the type that reports use.
func told(t task.Tile) *report.Told {
	out := &report.Told{Verdict: t.Verdict, Wrong: t.Wrong, Uncertain: t.Uncertain, Disagree: t.Disagree, Uncertainty: t.Uncertainty, Disagreement: t.Disagreement, Error: t.Error}
	for _, l := range t.Lines {
		out.Lines = append(out.Lines, report.Line(l))
	}
	return out
}

// name returns the name of a label.
func (job *scoreJob) name(label int) string {
	if names := job.schema.ClassNames; label < len(names) {
		return names[label]
	}
	return fmt.Sprintf("label %d", label)
}

// newMontage reads the flags. It returns nil if no montage is wanted. It fails before the work begins if data holds no
// images.
func newMontage(c *cli.Context, data dataset.Dataset, p preprocess.Settings) (*montage, error) {
	path, n := c.String("montage"), c.Int("montage-images")
	if path == "" {
		if c.IsSet("montage-images") {
			return nil, flags.Usagef("say where they are shown: --montage FILE.html", "--montage-images without --montage")
		}
		return nil, nil
	}
	if n < 1 || n > maxTiles {
		return nil, flags.Usagef("", "--montage-images %d: want 1 to %d", n, maxTiles)
	}
	m := &montage{Selection: report.NewSelection(n), data: data}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".html", ".htm":
		m.write = (*report.Montage).WriteHTML
	case ".png":
		m.write = (*report.Montage).WritePNG
	default:
		return nil, flags.Usagef("", "--montage %s: unknown format %q, want .html or .png", path, ext)
	}
	var err error
	if m.view, err = p.View(data.Shape()); err != nil {
		return nil, flags.Usagef("leave out --montage", "--montage: %s: %w", data.Sources()[0].Path, err)
	}
	return m, nil
}

// show writes the montage of the selected examples. It reads their images again. title and note name the ensemble and
// the data.
func (m *montage) show(w io.Writer, title, note string, classes []string) error {
	return m.write(&report.Montage{
		Title: title, Note: note, Legend: m.legend, Classes: classes, Sections: m.Sections(),
		Name:  m.data.Name,
		Image: m.image,
	}, w)
}

// image returns example i as an image for display.
func (m *montage) image(i int) (image.Image, error) {
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
func drawMontage(c *cli.Context, job *scoreJob) (*flags.Output, error) {
	if job.montage == nil {
		return nil, nil
	}
	out, err := flags.CreateOutput(c.String("montage"), true)
	if err != nil {
		return nil, err
	}
	title := fmt.Sprintf("%s, %s", job.ensemble.Path, report.Plural(job.ensemble.Members(), "member"))
	note := fmt.Sprintf("%s: %s", strings.Join(c.Args().Tail(), " "), report.Plural(job.summary.rows, "image"))
	if err := job.montage.show(out, title, note, job.schema.ClassNames); err != nil {
		out.Abort()
		return nil, flags.BadOutput(err)
	}
	return out, nil
}
