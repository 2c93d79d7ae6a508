package infer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
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
	took  time.Duration // to make the model and its session
	bytes int64         // that they took
	run   atomic.Int64  // nanoseconds of a run for each example; 0 if no measurement ran the model
}

func (m *loaded) close() {
	if m.kept == nil {
		m.Close()
	}
}

// scores runs the model.
func (m *loaded) scores(ctx context.Context, inputs []ort.Tensor) (ort.Tensor, error) {
	out, err := m.Run(ctx, inputs)
	if err != nil {
		return ort.Tensor{}, err
	}
	return m.together(out, int(inputs[0].Shape[0]))
}

func (g *group) close() {
	for _, m := range g.sessions {
		m.close()
	}
}

// keptSession is the session of a model that runs over several data sets. It is nil until the first of them.
type keptSession struct{ session *Session }

// Keep returns m with one session for all calls of [Run.Predict], in turn. The function release closes it.
func (m Model) Keep() (kept Model, release func()) {
	k := &keptSession{}
	m.kept = k
	return m, func() {
		if k.session != nil {
			k.session.Close()
		}
	}
}

// session opens the model's session for runs of so many examples, unless it is kept open.
func (m Model) session(ctx context.Context, e *Engine, batch int) (session *Session, err error) {
	if m.kept != nil && m.kept.session != nil {
		return m.kept.session, nil
	}
	opts := e.options(m.Graph, batch, m.takes())
	opts.Callers = m.callers(e)
	session, err = e.open(ctx, m.Graph, m.Filled, opts)
	if err == nil && m.kept != nil {
		m.kept.session = session
	}
	return session, err
}

// open makes sessions of models first … first+count−1, which belong to one part. Sessions that are open already are taken over.
func (s *Scorer) open(ctx context.Context, first, count, batch int) (*group, error) {
	g := &group{first: first, batch: batch}
	for k, end := first, first+count; k < end; k = first + len(g.sessions) {
		if m := s.ran.takeOver(k); m != nil {
			g.sessions = append(g.sessions, m)
		} else if err := g.add(ctx, s, k, s.ran.missing(k, end)); err != nil {
			g.close()
			return nil, err
		}
	}
	return g, nil
}

// add adds models first … first+count−1 of a Scorer, with new sessions.
func (g *group) add(ctx context.Context, s *Scorer, first, count int) error {
	began, before := time.Now(), memory.Resident()
	return s.models.Each(ctx, first, count, func(m Model) error {
		session, err := m.session(ctx, s.engine, g.batch)
		if err == nil {
			err = s.engine.Place(ctx, &m.placed, m.Name, m.Graph, session, m.Filled, s.data, m.takes()...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		m.Filled.Parameters, m.Filled.Statistics = nil, nil // only valid during the call
		g.sessions = append(g.sessions, &loaded{Model: m, Session: session, took: time.Since(began), bytes: memory.Resident() - before})
		began, before = time.Now(), memory.Resident()
		return nil
	})
}

// A sessionPool opens groups in order, one ahead of the group that runs, and again for each chunk. If all fit into
// memory, it opens them only once.
type sessionPool struct {
	scorer *Scorer
	ready  chan *group
	stay   []*group // opened once for all chunks
	before int64    // bytes of the process before the run
}

// build opens groups until all chunks have had their groups.
func (p *sessionPool) build(ctx context.Context, chunks int) (err error) {
	plan := p.scorer.plan
	for range chunks {
		for i, planned := range plan.groups {
			var g *group
			if i < len(p.stay) {
				g = p.stay[i]
			} else if g, err = p.scorer.open(ctx, planned.first, planned.Count, planned.batch); err != nil {
				return err
			} else if plan.resident {
				p.stay = append(p.stay, g)
			}
			if err := send(ctx, p.ready, g); err != nil {
				p.done(g)
				return err
			}
		}
	}
	return nil
}

// run sends a chunk through all groups.
func (p *sessionPool) run(ctx context.Context, x *examples, c *Chunk) error {
	s := p.scorer
	for range s.plan.groups {
		began := time.Now()
		group, _, err := receive(ctx, p.ready)
		s.waited.members += time.Since(began)
		if err != nil {
			return err
		}
		began = time.Now()
		if err = s.runGroup(ctx, group, x, c); !x.replay {
			c.counted(group)
		}
		s.waited.runs += time.Since(began)
		p.done(group)
		if err != nil {
			return err
		}
	}
	return nil
}

// done takes back a group that ready gave.
func (p *sessionPool) done(g *group) {
	if !p.scorer.plan.resident {
		g.close()
	}
}

// close closes the groups that are still open, after build has returned.
func (p *sessionPool) close() {
	for _, g := range p.stay {
		if l := p.scorer.later; l.into != nil {
			g.sessions[0].bytes = max(g.sessions[0].bytes, memory.Resident()-p.before) // some keep what their runs compute
			l.into.leave(g, l.model+g.first)
		} else {
			g.close()
		}
	}
}
