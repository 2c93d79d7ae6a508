package batchnorm

import (
	"context"
	"math"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/store"
)

// finding is what [ChooseSampleSize] found about a network and its data. A store keeps it for later commands.
type finding struct {
	Check *bnupdate.Check `json:"check"`
	// Chosen is nil if the number of images was given.
	Chosen *chosen `json:"chosen,omitempty"`
}

// chosen is what the choice of the number of images depends on.
type chosen struct {
	SWA      *float64 `json:"swa"`    // the constant part of SWA's loss; nil if unknown
	Images   int      `json:"images"` // that SWA sees
	Member   int      `json:"member"` // images that a member must see
	Between  float64  `json:"between"`
	Warnings []string `json:"warnings,omitempty"`
}

// recall looks for the finding of an earlier command.
func (s *sizing) recall(ctx context.Context, open bool) error {
	if s.how.Findings == nil {
		return nil
	}
	key, err := s.findingKey(open)
	if err != nil || key == nil {
		return err
	}
	s.key = key
	f := &finding{}
	if s.how.Findings.Recall(key, f) && f.Check != nil && (f.Chosen != nil) == open {
		s.found = f
		s.record.Check = f.Check
	}
	return ctx.Err()
}

// remember keeps what was found.
func (s *sizing) remember(images int, open bool) {
	if s.key == nil || s.found != nil || s.record.Check == nil {
		return
	}
	f := finding{Check: s.record.Check}
	if open {
		f.Chosen = &chosen{SWA: known(s.constant), Images: images, Member: s.wanted, Between: s.record.Between, Warnings: s.record.Warnings}
	}
	s.how.Findings.Remember(s.key, f)
}

// known returns nil for a number that is not finite.
func known(v float64) *float64 {
	if v-v != 0 {
		return nil
	}
	return &v
}

// choice returns what an earlier command chose, and sets the constant of SWA's loss. It returns nil if there is none.
func (s *sizing) choice() *chosen {
	if s.found == nil || s.found.Chosen == nil {
		return nil
	}
	c := s.found.Chosen
	if s.constant = math.NaN(); c.SWA != nil {
		s.constant = *c.SWA
	}
	return c
}

// findingKey returns everything that a finding depends on. It returns nil if the posterior or the data has no identity.
func (s *sizing) findingKey(open bool) (store.Key, error) {
	n, order := s.n, s.data.Order
	order.Limit = min(mostChecked, s.data.Images())
	k, err := s.run.FindingKey("batch-norm findings", n, dataset.ID(s.data.Data), s.data.Data, order.Indices(s.data.Data.Len()))
	if k == nil {
		return nil, err
	}
	k["order"], k["rule"], k["batch"], k["pass_batch"] = s.data.Order, s.data.Rule.String(), s.size, n.Passes.Batch
	k["given_batch"], k["kept"], k["layers"] = s.run.Options().BatchSize, n.Kept(), n.Passes.Plan.Layers()
	k["provider"] = provider(s.run.Engine, n).String()
	if open {
		k["members"], k["output"], k["scores"] = undivided(possible(s.how.Members, n)), n.Output(), n.Form()
	}
	return k, nil
}
