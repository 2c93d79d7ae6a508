package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/ensemble"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study/compare"
	"github.com/swagwrap/swagwrap/internal/study/conversion"
	"github.com/swagwrap/swagwrap/internal/tempfile"
	"github.com/swagwrap/swagwrap/onnxio/fused"
	"github.com/swagwrap/swagwrap/weights"
)

// converts reports whether the model of an ensemble computes in fewer bits, and halves whether in float16.
func (o *exportOptions) converts() bool { return o.quantize != "" || o.halves() }
func (o *exportOptions) halves() bool   { return o.hub == "" && o.web == "" && o.dtype == weights.F16 }

// checkConversion refuses flags of a conversion that do not go together.
func (o *exportOptions) checkConversion(j *ensemble.Fused) error {
	switch {
	case o.dtype == weights.BF16 && o.hub == "" && o.web == "":
		return console.Usagef("--dtype f16", "--dtype bf16: ONNX Runtime has no operators in bfloat16 for the processor, so that nothing "+
			"here can check such a model")
	case o.quantize != "" && (o.halves() || j.Storage == fused.Int8), o.halves() && j.Storage == fused.Int8:
		return console.Usagef("give one of them", "--quantize, --dtype f16 and --storage int8 shrink the same weights")
	case o.quantize == "" && o.ranges.Set:
		return console.Usagef("", "--calibration without --quantize int8")
	case o.quantize != "" && !o.ranges.Set:
		return console.Usagef("--calibration DATA: some hundred training examples, without labels", "--quantize %s: needs the ranges of "+
			"numbers inside the members", o.quantize)
	case o.val.Set && !o.converts():
		return console.Usagef("--check DATA compares the model with the members", "--val is for --dtype f16 and --quantize int8")
	case !o.converts() || o.val.Set || j.Ensemble.Guarantee.Empty() || len(j.Members) < j.Ensemble.Members():
		return nil
	}
	return console.BadInput(fmt.Errorf("%s: its guarantees were chosen for members in float32", o.of),
		"--val DATA, with labels, chooses them anew for the model in fewer bits")
}

// convert makes the plan of one with fewer bits. The model is run on --val, and its calibration and guarantees are fitted anew.
func (o *exportOptions) convert(ctx context.Context, j *ensemble.Fused, engine *infer.Engine) ([]*report.Table, error) {
	full, name := *j, "f16"
	if o.quantize != "" {
		name = o.quantize
		data, err := open.OpenUnlabelled(o.Opener, o.data, o.ranges.Value, j.Networks)
		if err == nil {
			err = console.BadInput(j.Calibrate(ctx, engine, data))
		}
		if err != nil {
			return nil, err
		}
	} else {
		j.Half = true
	}
	if !o.val.Set {
		if j.Ensemble.Calibration != nil {
			o.Warnf("%s: its calibration was fitted to members in float32: --val DATA fits it anew", o.of)
		}
		return nil, nil
	}
	folder, err := tempfile.Folder()
	if err != nil {
		return nil, console.BadOutput(err)
	}
	defer tempfile.Remove(folder)
	data, err := o.OpenData(o.data, o.val.Value, "", j.Networks[0])
	if err != nil {
		return nil, err
	}
	if _, err := o.CheckInputs(ctx, engine, open.Probe{
		Networks:   j.Networks,
		Data:       data,
		Path:       o.val.Value,
		Trained:    j.Ensemble.Components[0].Probe,
		Earlier:    j.Ensemble.Checked(),
		Preprocess: o.data.Preprocess,
	}); err != nil {
		return nil, err
	}
	s := conversion.Study{
		Engine:     engine,
		Data:       data,
		Path:       o.val.Value,
		Folder:     folder,
		CPUSeconds: compare.CPUSeconds,
		Producer:   console.Producer(),
		Try: func(ctx context.Context, path string) error {
			_, _, err := o.outputs(ctx, path, outputsRequest{
				Name: cmp.Or(o.output.Path, o.hub, o.web),
				Of:   open.OutputsOf{Card: j.Ensemble.Card},
			})
			return err
		},
	}
	found, err := s.Run(ctx, &full, j, name)
	if err != nil {
		if path := (*os.PathError)(nil); errors.As(err, &path) {
			return nil, console.BadOutput(err)
		}
		return nil, console.BadInput(err)
	}
	for _, note := range found.Notes() {
		o.Logf("%s", note)
	}
	anew := *j.Ensemble
	anew.Calibration, anew.Guarantee = found.Calibration, found.Guarantee
	j.Ensemble = &anew
	return found.Tables(), nil
}
