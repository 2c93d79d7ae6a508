package task

import (
	wire "encoding/binary"
	"math"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/calibrate/regression"
)

// numberSums implements [positionSums] for a regression. Errors of several targets add up, in their own units.
type numberSums struct {
	t Targeted
	calibrate.NumberSums
}

func (s *numberSums) add(p position) error {
	densities := s.t.LogLikelihoods(p.outcome, p.label)
	if densities == nil {
		s.NLL = math.NaN()
	}
	for _, v := range densities {
		s.NLL -= v
	}
	means, _ := s.t.Shown(p.outcome)
	for k, y := range p.label.Values {
		off := y - means[k]
		s.Squared, s.Absolute = s.Squared+float64(off*off), s.Absolute+math.Abs(off)
	}
	s.Positions++
	return nil
}

func (s *numberSums) reset()               { s.NumberSums = calibrate.NumberSums{} }
func (s *numberSums) merge(o positionSums) { s.Merge(&o.(*numberSums).NumberSums) }

func (s *numberSums) brief() positionSums {
	own := *s
	return &own
}

func (s *numberSums) append(b []byte) []byte {
	b = wire.AppendUvarint(b, uint64(s.Positions))
	for _, v := range []float64{s.Squared, s.Absolute, s.NLL} {
		b = wire.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

func (s *numberSums) parse(b []byte) error {
	v, n := wire.Uvarint(b)
	if n <= 0 || len(b) != n+24 {
		return errSums
	}
	s.Positions = int64(v)
	for i, to := range []*float64{&s.Squared, &s.Absolute, &s.NLL} {
		*to = math.Float64frombits(wire.LittleEndian.Uint64(b[n+8*i:]))
	}
	return nil
}

func (s *numberSums) losses() (n float64, sums [3]float64) {
	return float64(s.Positions), [3]float64{s.NLL, s.Squared, s.Absolute}
}

func (s *numberSums) found() *result {
	r := &result{numbers: regression.Metrics{RMSE: s.RMSE(), MAE: s.MAE()}}
	r.NLL = s.NLL / float64(s.Positions)
	return r
}

func (s *numberSums) measures() []measure      { return pixelNumberMeasures }
func (s *numberSums) confidences() confidences { return nil }
func (s *numberSums) parts() []Part            { return nil }
