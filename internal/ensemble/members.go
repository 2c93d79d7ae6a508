package ensemble

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/weights"
)

// Member is a member of an ensemble while it is in memory.
type Member struct {
	Number     int // number among all components' members, from 0
	Component  int
	Network    *infer.Network
	Parameters weights.Vector // valid only during the call of the function that gets it
	Statistics weights.Slice  // nil until they have been recomputed
	// Weight is the weight of its probabilities in the average, as a multiple of 1/S. It is 1 if all members have the
	// same weight.
	Weight float64
}

// EachMember calls f with each member in turn. networks has one network per component. Each member is drawn by its
// number in the ensemble, so members of different components use different random numbers. workers is the number of
// goroutines of the sampler. If f returns [ErrEnough], its member is the last one of its component.
func (e *Ensemble) EachMember(ctx context.Context, b *memory.Budget, networks []*infer.Network, workers int, f func(Member) error) error {
	for i, c := range e.Components { // one after the other, so that one holds weights
		first := e.first(i)
		s := &memberSource{e: e, networks: networks, numbers: numbers(first, first+c.Members), workers: workers, memory: b}
		made := 0
		err := s.each(ctx, 0, len(s.numbers), func(_ int, m Member) error {
			made++
			return f(m)
		})
		if errors.Is(err, ErrEnough) {
			c := &e.Components[i]
			c.Members, c.Statistics = made, c.Statistics[:min(made, len(c.Statistics))]
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ErrEnough ends the members of a component: see [Ensemble.EachMember].
var ErrEnough = errors.New("enough members")

// All lists the numbers of the ensemble's members.
func (e *Ensemble) All() []int { return numbers(0, e.Members()) }

// numbers lists first … end−1.
func numbers(first, end int) (all []int) {
	for k := first; k < end; k++ {
		all = append(all, k)
	}
	return all
}

// memberSource is the [infer.MemberSource] of some members of an ensemble.
type memberSource struct {
	e        *Ensemble
	networks []*infer.Network // of the components
	numbers  []int            // numbers of the members, in the order in which they run
	weights  []float64        // weights of the members; nil for those of the ensemble
	workers  int              // goroutines of a sampler
	memory   *memory.Budget   // of a sampler's weights

	vectors map[int]eachVector // the vectors of each component that was needed so far
}

// eachVector calls f with the weights of the members first … first+count−1 of one component, by their numbers in the
// ensemble. The weights are valid only during the call of f.
type eachVector func(ctx context.Context, first, count int, f func(member int, parameters weights.Vector) error) error

// of returns the weights of component i. They are drawn, or read from checkpoints.
func (s *memberSource) of(ctx context.Context, i int) (eachVector, error) {
	if v := s.vectors[i]; v != nil {
		return v, nil
	}
	var v eachVector
	if n := s.networks[i]; s.e.Sampling.Covariance == Iterates {
		models, err := n.OpenAll(ctx, s.e.Components[i].Checkpoints, s.e.CheckpointPath)
		if err != nil {
			return nil, err
		}
		v = (&iterates{s.e.first(i), n, models}).each
	} else {
		opts, err := s.e.Sampling.Options()
		if err != nil {
			return nil, err
		}
		opts.Workers = s.workers
		d, err := infer.NewDrawer(n.Posterior, opts, s.memory)
		if err != nil {
			return nil, err
		}
		v = d.Each
	}
	if s.vectors == nil {
		s.vectors = map[int]eachVector{}
	}
	s.vectors[i] = v
	return v, nil
}

// each calls f with count of the members, starting at index at of s.numbers, and with the index of each.
func (s *memberSource) each(ctx context.Context, at, count int, f func(at int, m Member) error) error {
	for end := at + count; at < end; {
		first := s.numbers[at]
		i, place := s.e.Find(first)
		c := s.e.Components[i]
		run := 1 // consecutive members of the component
		for at+run < end && s.numbers[at+run] == first+run && place+run < c.Members {
			run++
		}
		vectors, err := s.of(ctx, i)
		if err != nil {
			return err
		}
		m := Member{Component: i, Network: s.networks[i], Weight: s.e.weight(i)}
		err = vectors(ctx, first, run, func(k int, parameters weights.Vector) error {
			m.Number, m.Parameters = k, parameters
			if len(c.Statistics) > 0 {
				m.Statistics = c.Statistics[place+k-first]
			}
			if s.weights != nil {
				m.Weight = s.weights[at+k-first]
			}
			return f(at+k-first, m)
		})
		if err != nil {
			return err
		}
		at += run
	}
	return nil
}

func (s *memberSource) Parts() (parts []infer.Part) {
	for _, k := range s.numbers {
		i, _ := s.e.Find(k)
		if last := len(parts) - 1; last < 0 || parts[last].Graph != s.networks[i].Graph {
			parts = append(parts, infer.Part{Graph: s.networks[i].Graph})
		}
		parts[len(parts)-1].Count++
	}
	return parts
}

func (s *memberSource) Each(ctx context.Context, first, count int, f func(infer.Model) error) error {
	return s.each(ctx, first, count, func(_ int, m Member) error {
		model, err := m.Network.Model("", m.Parameters, m.Statistics)
		if err != nil {
			return err
		}
		model.Name, model.Weight = fmt.Sprintf("%s: member %d of %s", s.e.Path, m.Number, m.Network.Posterior.Path), m.Weight
		return f(model)
	})
}

// Mix plans the components. With several posteriors, such as those of runs with different seeds, the
// ensemble is a mixture of Gaussians. This is MultiSWAG (Wilson and Izmailov, "Bayesian deep learning and a
// probabilistic perspective of generalization", NeurIPS 2020), which gives all posteriors the same weight.
//
// Mix spreads the members over the posteriors as evenly as possible. The first posteriors get one more if some are left
// over. Antithetic members are spread in pairs, and of an odd number the last one is alone. If there are too few for a pair
// of each posterior, they are independent. The weights of the posteriors are in the given ratio, or equal if it is nil.
// They do not depend on the number of members: more members describe a posterior more precisely, but do not raise its
// weight.
func (e *Ensemble) Mix(posteriors, members int, ratio []float64) error {
	e.Sampling.Antithetic = e.Sampling.Antithetic && members >= 2*posteriors
	e.Sampling.Orthogonal = e.Sampling.Orthogonal && e.Sampling.Antithetic
	switch {
	case posteriors > MaxPosteriors:
		return fmt.Errorf("%d posteriors, want at most %d", posteriors, MaxPosteriors)
	case members < posteriors:
		return fmt.Errorf("members: %d, want at least %d, 1 from each of %d posteriors", members, posteriors, posteriors)
	case ratio == nil:
		ratio = slices.Repeat([]float64{1}, posteriors)
	case len(ratio) != posteriors:
		return fmt.Errorf("%d weights for %d posteriors", len(ratio), posteriors)
	}
	total := 0.0
	for _, r := range ratio {
		if !(r > 0) || math.IsInf(r, 1) {
			return fmt.Errorf("weight %v: want a finite number above 0", r)
		}
		total += r
	}
	unit := e.Unit()
	units := members / unit
	e.Components = make([]Component, posteriors)
	for i, r := range ratio {
		share := r / total
		if share == 0 {
			return fmt.Errorf("weight %v: is negligible compared with the others", r)
		}
		n := units / posteriors
		if i < units%posteriors {
			n++
		}
		e.Components[i] = Component{Members: unit * n, Weight: share}
	}
	e.Components[posteriors-1].Members += members % unit
	return nil
}
