package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/maps"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/internal/task/dense"
	"github.com/swagwrap/swagwrap/internal/word"
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
func (w *mapWriter) write(name string, t dense.Task, r *dense.Reading) error {
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

func (w *mapWriter) file(path string, sides [3]int, t dense.Task, c task.Column, values []float32) error {
	out, err := flags.CreateOutput(path, w.force)
	if err != nil {
		return err
	}
	defer out.Abort()
	write := maps.WritePNG
	if w.format == "npy" {
		write = maps.WriteArray
	}
	if err := write(out, sides, t.About().Classes, c, values); err != nil {
		return flags.BadOutput(err)
	}
	return flags.Commit(out)
}

var (
	tileFlag = flags.Checked(&cli.StringFlag{Name: "tile", Usage: "of a segmentation, cut pictures into squares of `N` pixels, for pictures that are large or of different sizes. N,M lets them overlap by M pixels, where probabilities are averaged; M is an eighth of N by default", DefaultText: "whole pictures"}, parseTiling)
	atFlag   = flags.OneOf(&cli.StringFlag{Name: "at", Usage: "of a segmentation that resizes pictures, predict network|original: pixels as the network sees them, or as the picture has them", Value: "network"}, "network", "original")
)

// maxTile bounds the sides of a tile. Networks are given one as a whole.
const maxTile = 1 << 14

// parseTiling parses the value of --tile: the size, and the overlap after a comma.
func parseTiling(s string) (t dataset.Tiling, err error) {
	size, overlap, given := strings.Cut(s, ",")
	if t.Size, err = word.Whole(size, 1, maxTile); err != nil {
		return t, fmt.Errorf("%w pixels, such as 512, or 512,64 with an overlap", err)
	}
	t.Overlap = t.Size / 8
	if given {
		if t.Overlap, err = word.Whole(overlap, 0, t.Size-1); err != nil {
			return t, fmt.Errorf("overlap %w pixels, such as 512,64", err)
		}
	}
	return t, nil
}

// tiling reads --tile.
func tiling(c *cli.Context, n *infer.Network) (t dataset.Tiling, err error) {
	if !c.IsSet("tile") {
		return t, nil
	}
	if n.Axis() == 0 {
		return t, flags.Usagef("leave out --tile", "--tile: the network gives one prediction for a picture, and none for its pixels")
	}
	t, _ = parseTiling(c.String("tile")) // the flag was checked
	return t, flags.Refuse(c, "leave it out", "--*: is not with --tile", "montage", "save-batch", "estimate")
}

// atOriginal reads --at.
func atOriginal(c *cli.Context, n *infer.Network) (bool, error) {
	if c.String("at") != "original" {
		return false, nil
	}
	if n.Axis() == 0 {
		return false, flags.Usagef("leave out --at", "--at: the network gives one prediction for a picture, and none for its pixels")
	}
	return true, flags.Refuse(c, "leave it out", "--*: is not with --at original", "tile", "montage", "probs")
}
