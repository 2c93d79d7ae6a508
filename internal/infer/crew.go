package infer

import (
	"context"
	"fmt"
)

// group is several models of one part whose sessions are open at the same time.
type group struct {
	first    int // number of the first model
	batch    int // examples in a run
	sessions []*loaded
}

// loaded is a model with its session.
type loaded struct {
	Model
	*Session
}

func (g *group) close() {
	for _, m := range g.sessions {
		m.Close()
	}
}

// open makes sessions of models first … first+count−1, which belong to one part.
func (s *Scorer) open(ctx context.Context, first, count, batch int) (*group, error) {
	g := &group{first: first, batch: batch}
	err := s.models.Each(ctx, first, count, func(m Model) error {
		session, err := s.engine.Open(ctx, m.Filled, m.Output())
		if err == nil {
			err = s.engine.Place(ctx, &m.placed, m.Name, session, m.Filled, s.data, m.Output())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		m.Filled.Parameters, m.Filled.Statistics = nil, nil // only valid during the call
		g.sessions = append(g.sessions, &loaded{m, session})
		return nil
	})
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// A crew opens groups in order, one ahead of the group that runs, and again for each chunk. If all fit into memory,
// it opens them only once.
type crew struct {
	scorer *Scorer
	chunks int
	ready  chan *group
	stay   []*group // opened once for all chunks
}

func newCrew(s *Scorer, chunks int) *crew {
	return &crew{scorer: s, chunks: chunks, ready: make(chan *group)}
}

// build opens groups until all chunks have had their groups.
func (c *crew) build(ctx context.Context) error {
	p := c.scorer.plan
	for chunk := range c.chunks {
		for i, planned := range p.groups {
			var g *group
			var err error
			if chunk > 0 && p.resident {
				g = c.stay[i]
			} else if g, err = c.scorer.open(ctx, planned.first, planned.Count, planned.batch); err != nil {
				return err
			} else if p.resident {
				c.stay = append(c.stay, g)
			}
			select {
			case c.ready <- g:
			case <-ctx.Done():
				c.done(g)
				return ctx.Err()
			}
		}
	}
	return nil
}

// next returns the next group. The caller returns it by done.
func (c *crew) next(ctx context.Context) (*group, error) {
	select {
	case g := <-c.ready:
		return g, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *crew) done(g *group) {
	if !c.scorer.plan.resident {
		g.close()
	}
}

// close closes the groups that are still open, after build has returned.
func (c *crew) close() {
	for _, g := range c.stay {
		g.close()
	}
}
