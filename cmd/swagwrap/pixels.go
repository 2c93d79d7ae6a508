package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/maps"
	"github.com/swagwrap/swagwrap/internal/records"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/word"
)

// mapWriter writes the maps of the pixels of each picture.
type mapWriter struct {
	folder, format string
	roots          []string // folders that the names of pictures begin with
	names          *maps.Names
	files          *console.Filled // nil until the run begins
	keep           bool            // a run that is resumed needs the unfinished maps
}

// mapOptions says where maps go.
type mapOptions struct {
	folder, format string // no folder without --maps
	again          bool   // an earlier run may have begun to fill the folder
}

func parseMaps(s string) (o mapOptions, err error) {
	if folder, arrays := strings.CutPrefix(s, "npy="); arrays {
		return mapOptions{folder: folder, format: "npy"}, nil
	}
	return mapOptions{folder: s, format: "png"}, nil
}

// newMaps checks the folder. It returns nil if no maps are wanted. inputs are all files and folders that the command reads,
// and data are those with pictures.
func newMaps(o mapOptions, data []string, inputs ...string) (*mapWriter, error) {
	if o.folder == "" {
		return nil, nil
	}
	w := &mapWriter{folder: o.folder, format: o.format}
	for _, path := range data {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			w.roots = append(w.roots, path)
		}
	}
	return w, console.CheckFilled(w.folder, o.again, slices.Concat(data, inputs)...)
}

// name chooses the names of the maps of n pictures.
func (w *mapWriter) name(n int, of func(i int) string) (err error) {
	for i := range n {
		if name := of(i); console.Nested(name, w.folder) {
			return console.Usagef("choose a new folder for the maps", "%s: holds a picture of this command: %s", w.folder, name)
		}
	}
	if w.names, err = maps.NewNames(n, of, w.roots); err != nil {
		err = console.Usagef("rename one of them, or write their maps into two folders", "--maps: %w", err)
	}
	return err
}

// begin opens the folder of a run. done pictures have their maps from an earlier run. A part shares the folder with others.
func (w *mapWriter) begin(part *records.Part, done int, of func(i int) string) (err error) {
	if w == nil {
		return nil
	}
	which, first := "", 0
	if part != nil {
		which, first = records.PartName("", part.Index, part.Of), part.First
	}
	if w.files, err = console.OpenFilled(w.folder, which, done > 0); err != nil {
		return err
	}
	w.keep = done > 0
	for i := first; i < first+done; i++ {
		if stem := w.names.Stem(of(i)); !slices.ContainsFunc([]string{".", ".mean."}, func(s string) bool {
			return w.files.Has(stem + s + w.format)
		}) {
			w.keep = !w.files.New
			return console.Usagef("start over: --force\nname the folder of the earlier run: --maps FOLDER",
				"%s: the earlier run wrote no maps of %s here", w.folder, of(i))
		}
	}
	return nil
}

// write writes the maps of one picture. t describes its pixels.
func (w *mapWriter) write(name string, t task.Task, r *task.Reading) error {
	sides := task.SpecOf(t).Sides
	if sides[1] == 0 || sides[2] != 0 {
		return console.Usagef("leave out --maps: .jsonl has what is said of each token",
			"--maps: the network scores %d positions in one line, and maps have two axes", task.Positions(t))
	}
	draw := maps.WritePNG
	if w.format == "npy" {
		draw = maps.WriteArray
	}
	for k, c := range r.Channels {
		if c.Hidden || c.Name == "nll" || c.Name == "brier" || c.Name == "expected_entropy" {
			continue // the difference of two others, or only of labelled pixels
		}
		path := w.names.Stem(name) + "." + c.Name
		if c.Kind == task.Class {
			path = w.names.Stem(name)
		}
		err := w.files.Create(path+"."+w.format, func(out io.Writer) error { return draw(out, sides, t.About().Classes, c, r.Maps[k]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// finish moves the maps to their places.
func (w *mapWriter) finish() error {
	if w == nil {
		return nil
	}
	return w.files.Finish()
}

// pixelRows makes the rows for networks with a prediction for each pixel.
func (o *scoreOptions) pixelRows() flags.Table {
	return flags.Table{
		flags.Parsed(flags.Row{
			Name: "tile",
			Usage: "of a segmentation, cut pictures into squares of `N` pixels, for pictures that are large or of different sizes. " +
				"N,M lets them overlap by M pixels, where probabilities are averaged; M is an eighth of N by default",
			Preset: "whole pictures",
			Not:    "outputs original",
		}, &o.tiling, parseTiling),
		flags.Parsed(flags.Row{
			Name: "at",
			Usage: "of a segmentation that resizes pictures, predict network|original: pixels as the network sees them, or as the " +
				"picture has them",
			Default: "network",
			Not:     "outputs",
		}, &o.original, func(s string) (bool, error) { return s == "original", word.Check(s, "network", "original") }),
		flags.Parsed(flags.Row{
			Name: "maps",
			Usage: "also write, for each picture of a segmentation, the predicted class, confidence, entropy and mutual information of " +
				"every pixel into `FOLDER`, as PNG: the class as index, and other maps in 16 bits from 0 to the largest possible value. " +
				"npy=FOLDER writes arrays",
			Not: "outputs",
		}, &o.maps, parseMaps),
	}
}

// maxTile bounds the sides of a tile. Networks are given one as a whole.
const maxTile = 1 << 14

// parseTiling parses the value of --tile: the size, and the overlap after a comma.
func parseTiling(s string) (t dataset.Tiling, err error) {
	size, overlap, given := strings.Cut(s, ",")
	if t.Size, err = word.Integer(size, 1, maxTile); err != nil {
		return t, fmt.Errorf("%w pixels, such as 512, or 512,64 with an overlap", err)
	}
	t.Overlap = t.Size / 8
	if given {
		if t.Overlap, err = word.Integer(overlap, 0, t.Size-1); err != nil {
			return t, fmt.Errorf("overlap %w pixels, such as 512,64", err)
		}
	}
	return t, nil
}

func (o scoreOptions) tiles(n *infer.Network) (t dataset.Tiling, err error) {
	if o.tiling.Size == 0 {
		return t, nil
	}
	if !n.Large() {
		return t, console.Usagef("leave out --tile", "--tile: the network gives one prediction for a picture, and none for its pixels")
	}
	return o.tiling, o.Refuse("tiled", "leave it out", "--*: is not with --tile")
}

// atOriginal reports whether the predictions of a network get the size that pictures had.
func (o scoreOptions) atOriginal(n *infer.Network) (bool, error) {
	if !o.original {
		return false, nil
	}
	if !n.Large() {
		return false, console.Usagef("leave out --at", "--at: the network gives one prediction for a picture, and none for its pixels")
	}
	return true, o.Refuse("original", "leave it out", "--*: is not with --at original")
}
