package open

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/fileorder"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// OpenForModel opens data as an exported model takes it. asBytes says that the model takes pixels as bytes. Labels are left out. count
// counts pictures whose orientation nobody chose.
func OpenForModel(d DataOptions, model string, paths []string, count *dataset.Sideways) (data dataset.Dataset, asBytes bool, err error) {
	m, err := onnxio.Open(model)
	if err != nil {
		return nil, false, WrongKind(err, model, kind.Model)
	}
	defer m.Close()
	card, err := exportedCard(m)
	if err != nil {
		return nil, false, err
	}
	p, err := Preprocessing(d.Preprocess, card)
	if err != nil {
		return nil, false, err
	}
	meaning := card
	meaning.Task, meaning.Scores, meaning.Targets, meaning.State = task.None, "", nil, nil // the outputs do not matter here
	g, err := infer.ReadGraph(m, "", meaning)
	if err != nil {
		return nil, false, BadInput(err)
	}
	asBytes = g.Input.ElemType == onnxio.Uint8
	if m.Metadata[ensemble.KeyInput] == ensemble.InputPixels {
		p = preprocess.Settings{Image: p.Image, Channels: channelsOfPixels(p.Channels), Layout: "nhwc", Orientation: p.Orientation}
	}
	opts := dataset.Options{
		Arrays:     d.Arrays,
		Unlabelled: true,
		Preprocess: p,
		Shape:      g.Input.Shape[1:],
		Fields:     g.Fields(),
		Uint8:      asBytes,
		Memory:     d.Memory.Decoding(),
		Known:      infer.CardNames(card),
		Named:      d.Named,
		Order:      cmp.Or(d.Order, fileorder.Order(card.FileOrder)),
		Sideways:   count,
	}
	if opts.Columns, opts.Pad, err = columns(d.Columns, card, g); err != nil {
		return nil, false, err
	}
	data, err = dataset.Open(paths, opts)
	return data, asBytes, WrongData(err, paths...)
}

// channelsOfPixels returns the channels of a model that takes pixels: it changes red and blue itself.
func channelsOfPixels(network string) string {
	if network == "bgr" {
		return "rgb"
	}
	return network
}

// exportedCard returns the model card of an exported model.
func exportedCard(m *onnxio.Model) (card swag.Card, err error) {
	js := m.Metadata[ensemble.KeyCard]
	if js == "" {
		return card, BadInput(fmt.Errorf("%s: has no metadata of an export, want a model that %s wrote", m.Path, setting.Export),
			setting.Line(setting.Export.With(setting.Output.With("ensemble.onnx"), "ensemble.safetensors")))
	}
	if err := json.Unmarshal([]byte(js), &card); err != nil {
		return card, BadInput(fmt.Errorf("%s: metadata %q: %w", m.Path, ensemble.KeyCard, err))
	}
	return card, nil
}
