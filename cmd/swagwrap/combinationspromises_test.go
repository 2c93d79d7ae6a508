package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
)

// pictured are scenes whose examples have a page of pictures.
var pictured = []string{"classes", "binary", "labels", "regression", "means"}

// A guaranteedPlace is a place where a guarantee must be seen. args are a command. E stands for the ensemble in it, and D for data. seen
// returns an error if the guarantee is missing.
type guaranteedPlace struct {
	args string
	in   []string // scenes; nil for all
	code int
	seen func(p *promising, o *outcome) error
}

// promising is an ensemble with a guarantee, and what its rows and models have for it.
type promising struct {
	scene            *scene
	k                int
	columns, outputs []string
}

var guaranteedPlaces = []guaranteedPlace{
	{args: "score -o out/x.csv E D", seen: func(p *promising, o *outcome) error {
		return errors.Join(says(o.stderr, "guarantee: ", ", guaranteed "), p.rows("out/x.csv"))
	}},
	{args: "score -q -o out/x.jsonl E D", seen: func(p *promising, o *outcome) error { return p.named("out/x.jsonl", `"%s":`) }},
	{args: "score -q -o out/x.parquet E D", seen: func(p *promising, o *outcome) error { return p.named("out/x.parquet", "%s") }},
	{args: "score -q -o out/x.npz E D", seen: func(p *promising, o *outcome) error { return p.named("out/x.npz", "%s.npy") }},
	{args: "merge -o out/m.csv PARTS", seen: func(p *promising, o *outcome) error {
		return errors.Join(says(o.stderr, ", guaranteed "), p.rows("out/m.csv"))
	}},
	{args: "score -q --maps out/maps --montage out/m.html -o out/x.csv E D", in: []string{"pixels"}, seen: func(p *promising, o *outcome) error {
		return contains("out/m.html", "classes in the set of a pixel")
	}},
	{args: "score -q --montage out/m.html -o out/x.csv E D", in: pictured, seen: func(p *promising, o *outcome) error {
		line := "set: "
		if p.columns[0] == task.LowerColumn {
			line = "at least"
		}
		return contains("out/m.html", line)
	}},
	{args: "score -q --maps out/maps -o out/x.csv E D", in: []string{"pixels"}, seen: func(p *promising, o *outcome) error {
		if found, _ := filepath.Glob("out/maps/*.set_size.png"); len(found) == 0 {
			return fmt.Errorf("no map of the sizes")
		}
		return nil
	}},
	{args: "inspect E", seen: func(p *promising, o *outcome) error { return says(o.stdout, "coverage ", " % by ") }},
	{args: "export -q -o out/x.onnx E", seen: func(p *promising, o *outcome) error { return p.model("out/x.onnx", p.outputs) }},
	{args: "export -q --with-preprocessing -o out/x.onnx E", in: pictured, seen: func(p *promising, o *outcome) error {
		return p.model("out/x.onnx", p.outputs)
	}},
	{args: "export --members 0-1 -o out/x.onnx E", seen: func(p *promising, o *outcome) error {
		return errors.Join(says(o.stderr, "what it guarantees is of all 3 members, and is not in the model"), p.model("out/x.onnx", nil))
	}},
	{args: "export --member 0 -o out/x.onnx E", seen: func(p *promising, o *outcome) error {
		return says(o.stderr, "what it guarantees is of the members' average, and is not in the exported member")
	}},
	{args: "export -q --hub out/hub E", seen: func(p *promising, o *outcome) error {
		return errors.Join(p.model("out/hub/model.onnx", p.outputs), contains("out/hub/README.md", "## Guarantee", "`"+strings.Join(p.outputs, "`, `")+"`"))
	}},
	{args: "settle -o out/x.safetensors E D", code: 65, seen: func(p *promising, o *outcome) error {
		return says(o.stderr, "guarantees something of predictions by all its members", "hint: settle first")
	}},
}

// seenGuarantees runs the table for an ensemble of each task: all lines for the first one of a scene, and the first line and the export for
// the others.
func (w *world) seenGuarantees(say func(lineVerdict) error) error {
	for _, s := range scenes {
		for k, flags := range s.guarantees {
			p := &promising{scene: s, k: k, columns: []string{task.SetColumn, task.SizeColumn}, outputs: []string{task.SetColumn}}
			switch {
			case s.name == "regression" || s.name == "means":
				p.columns = []string{task.LowerColumn, task.UpperColumn}
				p.outputs = p.columns
			case slices.Contains(severalPositions, s.name):
				p.columns = []string{task.SizeColumn, task.MissedColumn}
			}
			if slices.Contains(flags, "--threshold") {
				p.columns, p.outputs = append(p.columns, task.AbstainColumn), append(p.outputs, task.AbstainColumn)
			}
			if by := slices.Index(flags, "--by"); by >= 0 && flags[by+1] != guarantee.ByClass {
				p.outputs = nil
			}
			for i, place := range guaranteedPlaces {
				if place.in != nil && !slices.Contains(place.in, s.name) || k > 0 && i > 0 && !strings.HasPrefix(place.args, "export -q -o") {
					continue
				}
				v, err := w.see(p, place)
				if err == nil {
					err = say(v)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (w *world) see(p *promising, place guaranteedPlace) (lineVerdict, error) {
	var args []string
	for _, word := range strings.Fields(place.args) {
		switch word {
		case "E":
			word = p.scene.guaranteed(p.k)
		case "D":
			word = p.scene.data[0]
		case "PARTS":
			parts := p.scene.at(fmt.Sprintf("promised%d.csv.part-000", p.k))
			args, word = append(args, parts+"0-of-0002"), parts+"1-of-0002"
		}
		args = append(args, word)
	}
	o, err := w.do(args)
	v := lineVerdict{Case: -1, Line: "swagwrap " + strings.Join(args, " "), Ended: true, Code: o.code, Printed: o.stderr, Runs: 1}
	byGroup := p.outputs == nil && args[0] == "export"
	switch {
	case byGroup && (o.code != 65 || !strings.Contains(o.stderr, "a model does not know the group of an example")):
		v.Faults = []string{"guarantee: by groups, and exported"}
	case byGroup:
	case o.code != place.code:
		v.Faults = []string{fmt.Sprintf("guarantee: want exit code %d", place.code)}
	default:
		if missing := place.seen(p, o); missing != nil {
			v.Faults = []string{"guarantee: " + missing.Error()}
		}
	}
	return v, errors.Join(err, w.restore())
}

// rows checks a table and the file next to it.
func (p *promising) rows(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	header, _, _ := strings.Cut(string(text), "\n")
	for _, name := range p.columns {
		if p.scene.name == "regression" && !strings.Contains(header, ","+name) || p.scene.name != "regression" && !slices.Contains(strings.Split(header, ","), name) {
			return fmt.Errorf("no column %s in %s", name, header)
		}
	}
	return contains(path+".meta.json", `"guarantee": {`, `"realised": {`, `"method": "`)
}

// named checks that a file has all columns, by what stands around their names.
func (p *promising) named(path, format string) error {
	for _, name := range p.columns {
		if err := contains(path, fmt.Sprintf(format, name)); err != nil {
			return err
		}
	}
	return nil
}

// model checks the outputs of a model, and that its metadata tells.
func (p *promising) model(path string, want []string) error {
	m, err := onnxio.Open(path)
	if err != nil {
		return err
	}
	defer m.Close()
	var found []string
	for _, o := range m.Graph.Outputs {
		if slices.Contains([]string{task.SetColumn, task.LowerColumn, task.UpperColumn, task.AbstainColumn}, o.Name) {
			found = append(found, o.Name)
		}
	}
	if !slices.Equal(found, want) {
		return fmt.Errorf("%s has the outputs %q, want %q", path, found, want)
	}
	if err := infertest.NodeReadsOutput(m); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	err = contains(path, ensemble.KeyGuarantee)
	if want == nil {
		if err == nil {
			return fmt.Errorf("%s guarantees something", path)
		}
		return nil
	}
	return err
}

func contains(path string, parts ...string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if !bytes.Contains(b, []byte(part)) {
			return fmt.Errorf("%s: has no %q", path, part)
		}
	}
	return nil
}

// says checks what a command printed.
func says(text string, parts ...string) error {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("does not say %q", part)
		}
	}
	return nil
}
