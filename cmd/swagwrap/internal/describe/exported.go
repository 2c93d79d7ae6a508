package describe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/hub"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/statedict"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// told describes an export by its metadata.
func (d *described) told(metadata map[string]string) error {
	var o ensemble.Origin
	var calibration *task.Calibration
	var guaranteed *guarantee.Guarantee
	var figures *hub.Stored
	where := "in the graph"
	js := metadata[ensemble.KeyCalibration]
	if js == "" {
		js, where = metadata[ensemble.KeyApply], "not in the graph: apply it to the scores"
	}
	for _, v := range []struct {
		key, text string
		to        any
	}{{ensemble.KeyOrigin, metadata[ensemble.KeyOrigin], &o}, {ensemble.KeyCalibration, js, &calibration},
		{ensemble.KeyGuarantee, metadata[ensemble.KeyGuarantee], &guaranteed},
		{ensemble.KeyFigures, metadata[ensemble.KeyFigures], &figures}} {
		if v.text == "" {
			continue
		}
		if err := json.Unmarshal([]byte(v.text), v.to); err != nil {
			return fmt.Errorf("%s: metadata %q: %w", d.Path, v.key, err)
		}
	}
	if calibration != nil {
		if err := calibration.Sound(); err != nil {
			return fmt.Errorf("%s: metadata %q: %w", d.Path, ensemble.KeyCalibration, err)
		}
	}
	if guaranteed != nil {
		if err := guaranteed.Sound(); err != nil {
			return fmt.Errorf("%s: metadata %q: %w", d.Path, ensemble.KeyGuarantee, err)
		}
	}
	d.Producer, d.Metadata, d.Next = o.Producer, metadata, []string{}
	if card := metadata[ensemble.KeyCard]; card != "" {
		if d.Card = json.RawMessage(card); !json.Valid(d.Card) {
			return fmt.Errorf("%s: metadata %q: not JSON", d.Path, ensemble.KeyCard)
		}
		var known swag.Card
		if json.Unmarshal(d.Card, &known) == nil {
			d.parity(known)
		}
	}
	what := map[string]string{
		ensemble.ModelEnsemble: "an ensemble: members " + metadata["swagwrap.members"],
		ensemble.ModelSWA:      "the mean of the weights (SWA)",
		ensemble.ModelMember:   "one member",
	}
	d.from("holds", "%s", cmp.Or(what[metadata[ensemble.KeyKind]], metadata[ensemble.KeyKind]))
	if e := o.Ensemble; e != nil {
		d.from("ensemble", "%s (%s)", e.Path, short(e.ID))
	}
	if o.Member != nil {
		d.from("member", "%d", *o.Member)
	}
	if s := o.Sampling; s != nil {
		d.from("drawn", "%s", drawn(*s))
	}
	for _, p := range o.Posteriors[:min(len(o.Posteriors), most)] {
		d.from("posterior", "%s (%s)", p.Path, short(p.ID))
		d.checkpoints("checkpoints", p.Checkpoints)
		if p.Mean != nil {
			d.checkpoints("mean", []swag.Checkpoint{*p.Mean})
		}
	}
	if calibration == nil {
		d.calibrated(nil, 0)
	} else {
		d.quality("calibration", "%s, %s", calibration, where)
	}
	if t := metadata["swagwrap.threshold"]; t != "" {
		d.quality("threshold", "%s", t)
	}
	d.guaranteed(guaranteed)
	if figures != nil {
		d.quality("measured", "%s", figures)
	}
	return nil
}

// exported describes a model that export wrote. With -v it shows the tensors, too.
func (d *described) exported() error {
	m, err := onnxio.Open(d.Path)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := d.told(m.Metadata); err != nil {
		return err
	}
	for _, in := range m.FeedInputs() {
		d.from("input", "%s %s %s", in.Name, in.ElemType, onnxio.FormatShape(in.Shape, in.Dims))
	}
	for _, out := range m.Graph.Outputs {
		d.from("output", "%s %s %s", out.Name, out.ElemType, onnxio.FormatShape(out.Shape, out.Dims))
	}
	d.quality("to run it", "any ONNX Runtime: docs/deploy.md")
	if err := checkpoints.Sound(m); err != nil || !d.env.Verbose || d.how.JSON {
		return err
	}
	all, err := diagnosis.Diagnose(d.ctx, []*onnxio.Model{m})
	if err != nil {
		return err
	}
	all.AllTensors = true
	d.more = func() error {
		fmt.Fprintln(d.env.Stdout)
		return all.WriteText(d.env.Stdout, d.env.Screen())
	}
	return nil
}

// exportedWeights returns the metadata of weights that export wrote, or nil.
func exportedWeights(path string) map[string]string {
	f, err := statefile.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	metadata, err := statedict.ParseOrigin(f.Origin)
	if err != nil {
		return nil
	}
	return metadata
}

// weights describes weights that export wrote. With -v it shows the tensors, too.
func (d *described) weights() error {
	metadata := exportedWeights(d.Path)
	if err := d.told(metadata); err != nil {
		return err
	}
	files, err := Torch([]string{d.Path})
	if err != nil {
		return err
	}
	sd := files[0].StateDicts[0]
	d.from("state_dict", "%s of floats, %s numbers, %s", report.Plural(len(sd.Tensors), "tensor"),
		report.Thousands(int(sd.Elements)), sd.types())
	load := fmt.Sprintf("model.load_state_dict(torch.load(%q))", d.Path)
	switch {
	case statefile.Several(d.Path):
		load = fmt.Sprintf("the model's from_pretrained(%q)", d.Path)
	case strings.HasSuffix(d.Path, ".safetensors"):
		load = fmt.Sprintf("model.load_state_dict(safetensors.torch.load_file(%q))", d.Path)
	}
	d.quality("to load it", "%s", load)
	if d.env.Verbose && !d.how.JSON {
		d.more = func() error {
			sd.writeTensors(d.env.Stdout, d.env.Screen())
			return nil
		}
	}
	return nil
}
