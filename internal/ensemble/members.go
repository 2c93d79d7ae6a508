package ensemble

import (
	"context"

	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// groupBytes bounds the weights held at a time. Members drawn together share
// one read of the deviations.
const groupBytes = 256 << 20

// EachMember draws members 0 … count−1 and calls f with each in turn. The
// weights are valid during the call only.
func EachMember(ctx context.Context, p *swag.Posterior, opts swag.SampleOptions, count int, f func(member int, parameters weights.Slice) error) error {
	s, err := swag.NewSampler(p, opts)
	if err != nil {
		return err
	}
	group := int(max(1, min(int64(count), groupBytes/(4*p.Len()))))
	drawn := make([][]float32, group)
	for j := range drawn {
		drawn[j] = make([]float32, p.Len())
	}
	for first := 0; first < count; first += group {
		var members []int
		for k := first; k < min(first+group, count); k++ {
			members = append(members, k)
		}
		if err := s.Draw(ctx, drawn[:len(members)], members); err != nil {
			return err
		}
		for j, k := range members {
			if err := f(k, drawn[j]); err != nil {
				return err
			}
		}
	}
	return nil
}
