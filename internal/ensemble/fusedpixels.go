package ensemble

import (
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/fused"
)

// pictures returns the settings with which the networks preprocess images.
func (j *Fused) pictures() (preprocess.Settings, error) {
	s, err := j.Ensemble.Preprocess()
	if err != nil {
		return s, err
	}
	if n := j.Networks[0]; len(n.Inputs) > 1 {
		return s, fmt.Errorf("%s: the networks take %d inputs, want a single one for a model that takes 8-bit pixels",
			j.Ensemble.Path, len(n.Inputs))
	}
	if s, err = s.Resolve(j.Networks[0].Input.Shape[1:]); err != nil {
		return s, fmt.Errorf("%s: %w", j.Ensemble.Path, err)
	}
	return s, nil
}

// takePixels makes the model take 8-bit pixels, and normalise them as [preprocess.Settings] does. Each step rounds to
// float32.
func (j *Fused) takePixels(m *fused.Model) error {
	s, err := j.pictures()
	if err != nil {
		return err
	}
	in := m.Inputs()[0]
	batch, elem, shape := in.Dims[0], in.ElemType, s.Shape()
	if !elem.DType().IsFloat() && elem != onnxio.Uint8 {
		return fmt.Errorf("%s: the networks take %v, want pictures", j.Ensemble.Path, elem)
	}
	if _, err := s.Normalizer(shape, true); elem != onnxio.Uint8 && err != nil { // checks mean and std against the channels
		return fmt.Errorf("%s: %w", j.Ensemble.Path, err)
	}
	h, w, c := int64(s.Image.InputSize[0]), int64(s.Image.InputSize[1]), int64(s.Planes())
	m.Takes(onnxio.Uint8, []int64{-1, h, w, c}, []string{batch, "", "", ""}, func(x string) string {
		if s.Channels == "bgr" {
			x = m.Node("Gather", []string{x, m.Integers(2, 1, 0)}, fused.Attribute{Name: "axis", Int: 3})
		}
		if s.Layout == "nchw" {
			x = m.Node("Transpose", []string{x}, fused.Attribute{Name: "perm", Ints: []int64{0, 3, 1, 2}})
		}
		if elem == onnxio.Uint8 {
			return x // the networks normalise
		}
		x = m.Node("Cast", []string{x}, fused.Attribute{Name: "to", Int: int64(onnxio.Float)})
		x = normalise(m, x, s)
		if elem != onnxio.Float {
			x = m.Node("Cast", []string{x}, fused.Attribute{Name: "to", Int: int64(elem)})
		}
		return x
	})
	return nil
}

// normalise adds operators for (x·scale − mean) / std.
func normalise(m *fused.Model, x string, s preprocess.Settings) string {
	plane := func(values []float64) string {
		shape := []int64{1, int64(len(values)), 1, 1}
		if s.Layout == "nhwc" {
			shape = []int64{1, 1, 1, int64(len(values))}
		}
		list := make([]float32, len(values))
		for i, v := range values {
			if s.Channels == "bgr" { // settings list them as red, green, blue
				v = values[len(values)-1-i]
			}
			list[i] = float32(v)
		}
		return m.Constant(list, shape...)
	}
	if s.Scale == 0 {
		x = m.Op("Div", x, m.Constant([]float32{255}, 1, 1, 1, 1)) // not ·(1/255): see [preprocess.Normalizer]
	} else {
		x = m.Op("Mul", x, m.Constant([]float32{float32(s.Scale)}, 1, 1, 1, 1))
	}
	if len(s.Mean) > 0 {
		x = m.Op("Sub", x, plane(s.Mean))
	}
	if len(s.Std) > 0 {
		x = m.Op("Div", x, plane(s.Std))
	}
	return x
}

// pixels gives data in the form that a model with [Fused.Pixels] takes.
type pixels struct {
	dataset.Bytes
	settings preprocess.Settings
	shape    []int64
}

func newPixels(data dataset.Dataset, s preprocess.Settings) (*pixels, error) {
	b, ok := data.(dataset.Bytes)
	if !ok {
		return nil, fmt.Errorf("%s: holds no 8-bit pixels, which the model takes", data.Name(0))
	}
	return &pixels{b, s, []int64{int64(s.Image.InputSize[0]), int64(s.Image.InputSize[1]), int64(s.Planes())}}, nil
}

func (p *pixels) Shape() []int64 { return p.shape }

func (p *pixels) Read(dst dataset.Values, i int) error {
	src := make([]byte, len(dst.Floats))
	if err := p.Pixels(src, i); err != nil {
		return err
	}
	for k, v := range p.settings.Picture(src, int(p.shape[0]), int(p.shape[1])).Pix {
		dst.Floats[k] = float32(v)
	}
	return nil
}
