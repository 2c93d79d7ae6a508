package batchnorm

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/store"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Numbers of batches of at least leastBatch images for the choice. lossBatches serve to estimate the cost of the number
// of images. Members see at least memberBatches.
const (
	lossBatches   = 16
	memberBatches = 8
	leastBatch    = 16
)

// MaxLoss is the largest loss of NLL, in nats for each example, that the number of images may cost if it is chosen
// automatically. fixtures/augmented says how MaxLoss was chosen.
const MaxLoss = 2e-4

// SampleSizing says how to make batch-norm data ready for members.
type SampleSizing struct {
	// Auto chooses how many images SWA and members see. Without it they see all images that the order visits.
	Auto bool
	// Members says how members are drawn. The first of them serves to choose the number of images.
	Members swag.SampleOptions
	// Drawn says how the command draws its own networks, the zero value for SWA. Nil stands for a study, which runs SWA too.
	Drawn *swag.SampleOptions
	// Findings, if not nil, keeps what was found about a network and its data. Later commands make no passes for it.
	Findings *store.Store
	// Resize, if not nil, is called with the number of images that the passes take, once it is known.
	Resize func(images int64)
	// Seen, if not nil, is called when the first pass of the command has completed a record, with its new warnings.
	Seen func(r *Record, warnings []string)
}

// ChooseSampleSize makes batch-norm data ready for the members of the networks. It compares the images with the
// statistics that each network's last checkpoints store. If the number of images is open, it also estimates its cost.
//
// If ChooseSampleSize chooses that number, SWA sees as many images as are needed to know its predictions. Members see
// fewer, since SWA's pass shows the noise of these images: see [bnupdate.Control]. These passes are kept: see
// [Training.ForMember].
//
// ChooseSampleSize returns a record of each network's statistics, nil for networks without batch norm.
func ChooseSampleSize(ctx context.Context, run infer.Run, networks []*infer.Network, data Training, how SampleSizing) (Training,
	[]*Record, error) {
	records := make([]*Record, len(networks))
	var work []*sizing
	for i, n := range networks {
		if data.Data == nil && n.Recomputes() {
			continue // no chosen method recomputes statistics
		}
		if !n.Recomputes() {
			if kept := n.Kept(); len(kept) > 0 {
				records[i] = &Record{Kept: kept, Stale: n.Passes.Stale}
				records[i].warnInitial(n.Posterior.Statistics)
				if n.Posterior.Single() {
					records[i].Kept = nil // nothing else could be expected of them
				}
			}
			continue
		}
		s := &sizing{run: run, n: n, data: data, how: how, constant: math.NaN()}
		if err := s.ready(ctx); err != nil {
			return data, nil, err
		}
		records[i], work = s.record, append(work, s)
	}
	if len(work) == 0 {
		return data, records, nil
	}
	images, members, open := data.Images(), data.Images(), false
	for _, s := range work {
		open = open || s.how.Auto && s.data.Images() > s.images(memberBatches)
	}
	for _, s := range work {
		if err := s.recall(ctx, open); err != nil {
			return data, nil, err
		}
		if s.found == nil {
			if err := s.check(ctx, open); err != nil {
				return data, nil, err
			}
		}
	}
	if open {
		var err error
		if images, members, err = choose(ctx, work, how); err != nil {
			return data, nil, err
		}
	}
	if images-members == 1 && slices.ContainsFunc(work, func(s *sizing) bool { return data.joins(run.Engine, s.n) }) {
		members = images // the last batch of SWA's pass has that one example, too
	}
	data.members = members
	data.first = &firstPasses{seen: how.Seen, records: map[*infer.Network]*Record{}}
	swa := how.Drawn == nil || how.Drawn.Scale == 0 // the command computes SWA, too
	for _, s := range work {
		s.describe(images, open)
		s.remember(images, open)
		if !open {
			data.first.records[s.n] = s.record
			data.known = append(data.known, knownPass{s.n, swag.SampleOptions{}, s.swa})
			s.settle(swa, checking)
			continue
		}
		if members < images && s.swa.Images < images { // an earlier command chose, so SWA has no pass of so many
			if err := s.swaOf(ctx, images); err != nil {
				return data, nil, err
			}
		}
		data.known = append(data.known, s.known...)
		if s.settle(members < images || swa, choice); members == images {
			continue
		}
		s.record.MemberExamples = members
		if data.controls == nil {
			data.controls = map[*infer.Network]bnupdate.Control{}
		}
		data.controls[s.n] = bnupdate.Control{Some: s.n.Passes.Plan.First(s.swa, members/s.size).Statistics, All: s.swa.Statistics}
	}
	return data, records, nil
}

// choose returns how many images SWA and the members see.
func choose(ctx context.Context, work []*sizing, how SampleSizing) (images, members int, err error) {
	found := 0
	for _, s := range work {
		wanted, err := s.swaPass(ctx)
		if err != nil {
			return 0, 0, err
		}
		images = max(images, wanted)
		if s.choice() != nil {
			found++
		}
	}
	if how.Resize != nil && found == 0 {
		how.Resize(int64(len(work) * (work[0].checked + max(images, work[0].images(lossBatches)) + work[0].images(memberBatches))))
	}
	for _, s := range work {
		wanted, err := s.memberPass(ctx, images)
		if err != nil {
			return 0, 0, err
		}
		members = max(members, wanted)
	}
	for _, s := range work { // whole batches for all networks, some of which may have fixed sizes
		if over := members % s.size; over > 0 && members < images {
			members = min(members*s.size, images)
		}
	}
	return images, members, nil
}

// sizing is the state of the choice for one network.
type sizing struct {
	run  infer.Run
	n    *infer.Network
	data Training
	how  SampleSizing

	size     int             // size of a batch
	swa      bnupdate.Result // SWA's statistics from some images, and later from all that SWA sees
	constant float64         // the constant part of SWA's loss
	record   *Record
	checked  int // images that the check takes
	known    []knownPass
	settled  []func(tally.Purpose) // say what SWA's passes were for
	wanted   int                   // images that members must see
	key      store.Key             // of the finding; nil if none is kept
	found    *finding              // by an earlier command; or nil
}

func (s *sizing) ready(ctx context.Context) (err error) {
	n := s.n
	if err := widen(ctx, s.run.Engine, n, s.data.Data); err != nil {
		return err
	}
	if s.size, err = s.run.Batch(n.Input.Name, n.Passes.Batch, infer.DefaultBatchSize); err != nil {
		return fmt.Errorf("%s: %w", n.Posterior.Path, err)
	}
	s.record = &Record{Sources: s.data.Data.Sources(), Unit: dataset.Unit(s.data.Data), BatchSize: s.size, Rule: s.data.Rule.String(),
		Shuffle: s.data.Order.Shuffle, Seed: s.data.Order.Seed, Kept: n.Kept()}
	if p := provider(s.run.Engine, n); s.run.Provider().Partial() {
		s.record.Provider, s.record.ONNXRuntime = p.String(), s.run.Runtime().Version()
	}
	return nil
}

// swaPass returns the number of images that SWA must see.
func (s *sizing) swaPass(ctx context.Context) (images int, err error) {
	if s.choice() != nil {
		return min(s.up(s.constant/MaxLoss), s.data.Images()), nil
	}
	err = s.first(ctx, swag.SampleOptions{}, func(swa weights.Vector) error {
		if err := s.addSWA(ctx, swa, s.images(lossBatches)); err != nil {
			return err
		}
		s.constant, err = s.loss(ctx, swa, s.swa, nil)
		return err
	})
	return min(s.up(s.constant/MaxLoss), s.data.Images()), err
}

// addSWA extends SWA's pass to so many images. Whether members need it shows later.
func (s *sizing) addSWA(ctx context.Context, swa weights.Vector, images int) (err error) {
	s.swa, err = s.recompute(s.later(ctx), swa, images, s.swa)
	return err
}

// later returns a context for passes of SWA, which settle counts.
func (s *sizing) later(ctx context.Context) context.Context {
	ctx, settle := tally.Later(ctx)
	s.settled = append(s.settled, settle)
	return ctx
}

// settle counts SWA's passes: a part of what the command computes, or of the given purpose only.
func (s *sizing) settle(wanted bool, otherwise tally.Purpose) {
	for _, of := range s.settled {
		if wanted {
			of(tally.Wanted)
		} else {
			of(otherwise)
		}
	}
}

// swaOf makes SWA's pass over the given number of images.
func (s *sizing) swaOf(ctx context.Context, images int) error {
	err := s.first(ctx, swag.SampleOptions{}, func(swa weights.Vector) error { return s.addSWA(ctx, swa, images) })
	s.known = append(s.known, knownPass{s.n, swag.SampleOptions{}, s.swa})
	return err
}

// memberPass makes SWA's pass over the given number of images, and returns the number that members must see.
func (s *sizing) memberPass(ctx context.Context, images int) (members int, err error) {
	defer func() { s.wanted = members }()
	if c := s.choice(); c != nil && c.Images == images {
		return c.Member, nil
	}
	s.found = nil // another network of the command needs another number of images
	if err = s.swaOf(ctx, images); err != nil || images <= s.images(memberBatches) {
		return images, err
	}
	how := undivided(possible(s.how.Members, s.n))
	err = s.first(ctx, how, func(parameters weights.Vector) error {
		purpose := choice
		if of := s.how.Drawn; of != nil && undivided(*of) == how {
			purpose = tally.Wanted // the command goes on with it
		}
		r, err := s.recompute(tally.For(ctx, purpose), parameters, s.images(memberBatches), bnupdate.Result{})
		if err != nil {
			return err
		}
		s.known = append(s.known, knownPass{s.n, how, r})
		constant, err := s.loss(ctx, parameters, r, &s.swa)
		members = min(s.up(constant/MaxLoss), images)
		return err
	})
	return members, err
}

// describe sets the fields of the record that depend on the number of images.
func (s *sizing) describe(images int, open bool) {
	if s.n.Passes.Batch > 0 {
		images -= images % s.size // a network with a fixed batch takes no shorter batch
	}
	s.record.Examples = images
	if loss := s.constant / float64(images); loss-loss == 0 { // neither NaN nor infinite
		s.record.Loss = &loss
	}
	if c := s.choice(); c != nil {
		s.record.Between, s.record.Warnings = c.Between, c.Warnings
	} else if open {
		s.record.warn(s.swa)
	}
}

// up rounds a number of images up to whole batches, and to at least the images of memberBatches.
func (s *sizing) up(images float64) int {
	if !(images < math.MaxInt32) { // unknown
		return math.MaxInt
	}
	return max(int(math.Ceil(images/float64(s.size)))*s.size, s.images(memberBatches))
}

// images returns the number of images in the given number of batches. Small batches are replaced by several, with at
// least leastBatch images together.
func (s *sizing) images(batches int) int {
	return batches * s.size * ((leastBatch + s.size - 1) / s.size)
}

// first calls f with the first member.
func (s *sizing) first(ctx context.Context, how swag.SampleOptions, f func(weights.Vector) error) error {
	return infer.EachMember(ctx, s.run.Memory(), s.n.Posterior, how, 0, 1, func(_ int, parameters weights.Vector) error {
		return f(parameters)
	})
}

// recompute makes a pass over the first images. If the order is not random, it passes over all, because the first
// ones may differ from the others. known is the result of an earlier pass with the same weights.
func (s *sizing) recompute(ctx context.Context, parameters weights.Vector, images int, known bnupdate.Result) (bnupdate.Result, error) {
	some := s.data
	if some.Order.Shuffle {
		some.Order.Limit = min(images, some.Images())
	}
	return extend(ctx, s.run, s.n, parameters, some, known)
}

// choice is the purpose of passes that choose the number of examples.
var choice = tally.Check("number of examples")

// lossStream separates the uses of a seed: "bn-loss" in ASCII.
const lossStream = 0x626e2d6c6f7373

const (
	lossExamples = 64 // examples on which predictions are compared
	lossSplits   = 4
)

// loss estimates the constant c of c/N, the cost in NLL of the noise of statistics from N images. It returns NaN if
// it cannot estimate c.
//
// If statistics have the covariance C/N, they cost ½·tr(F·C)/N to second order, with F the Hessian of the NLL. Two
// halves of the images give statistics whose difference δ has four times that covariance. The divergence of their
// predictions is ½·δᵀFδ, four times the loss. This holds because the Hessian of the NLL of a softmax is the Fisher
// information of its own predictions, whatever the labels. If statistics will be corrected by a control, those of the
// halves are corrected too.
func (s *sizing) loss(ctx context.Context, parameters weights.Vector, r bnupdate.Result, control *bnupdate.Result) (float64, error) {
	ctx = tally.For(ctx, choice)
	plan := s.n.Passes.Plan
	if r.Batches() < 2 || s.n.Scoreless() {
		return math.NaN(), nil
	}
	examples := blend(s.data, s.n)
	predicts := s.run.Quiet().On(s.run.With(provider(s.run.Engine, s.n), s.run.Options().Passes))
	total := 0.0
	for k := range uint64(lossSplits) {
		halves := split(plan, r, s.data.Order.Seed, k)
		if control != nil {
			some := split(plan, plan.First(*control, r.Batches()), s.data.Order.Seed, k)
			for i := range halves {
				plan.Correct(halves[i], bnupdate.Control{Some: some[i], All: control.Statistics})
			}
		}
		var sums [2]*infer.Sums
		for i, statistics := range halves {
			sums[i] = &infer.Sums{}
			model, err := s.n.Model("batch norm", parameters, weights.Slice(statistics))
			if err != nil {
				return 0, err
			}
			if predicts.Predict(ctx, model, examples, sums[i]) != nil {
				return math.NaN(), ctx.Err() // the network's scores have no meaning here
			}
		}
		total += sums[0].Task.Divergence(sums[0].Outcome, sums[1].Outcome)
	}
	return total / lossSplits / 4 * float64(r.Images), nil
}

// blended holds averages of two examples each.
type blended struct {
	dataset.Dataset
	rows  []int
	whole []bool // floats that the network takes as integers; a single one stands for all
}

// blend returns examples about which the network is in doubt, as about future examples. On its training images it may
// be overconfident, and then its predictions do not move whatever its statistics are. Halfway between two images it
// is in doubt again (as in mixup, Zhang et al. 2018).
func blend(data Training, n *infer.Network) dataset.Dataset {
	data.Order.Limit = 2 * lossExamples
	whole := []bool{!n.Input.ElemType.DType().IsFloat()}
	if fields := dataset.Fields(data.Data); fields != nil {
		whole = nil
		for _, f := range fields {
			whole = append(whole, slices.Repeat([]bool{f.Integer()}, f.Size().Floats)...)
		}
	}
	return &blended{data.Data, data.Order.Indices(data.Data.Len()), whole}
}

func (b *blended) ID() string {
	return dataset.IDOf(dataset.ID(b.Dataset), "blend", b.rows, len(b.whole) > 0 && b.whole[0])
}
func (b *blended) Len() int                { return len(b.rows) / 2 }
func (b *blended) Labels() target.Target   { return target.Target{} }
func (b *blended) Fields() []dataset.Field { return dataset.Fields(b.Dataset) }
func (b *blended) Length(field, i int) int {
	return max(dataset.Length(b.Dataset, field, b.rows[2*i]), dataset.Length(b.Dataset, field, b.rows[2*i+1]))
}
func (b *blended) Name(i int) string { return b.Dataset.Name(b.rows[2*i]) }

func (b *blended) Read(dst dataset.Values, i int) error {
	if err := b.Dataset.Read(dst, b.rows[2*i]); err != nil {
		return err
	}
	other := dataset.Values{Floats: make([]float32, len(dst.Floats)), Ints: make([]int64, len(dst.Ints))}
	if err := b.Dataset.Read(other, b.rows[2*i+1]); err != nil {
		return err
	}
	for k, v := range other.Floats {
		x := &dst.Floats[k]
		if *x = (*x + v) / 2; b.whole[min(k, len(b.whole)-1)] {
			*x = float32(math.Floor(float64(*x)))
		}
	}
	for k, v := range other.Ints {
		dst.Ints[k] = dst.Ints[k]>>1 + v>>1 + dst.Ints[k]&v&1 // the sum of both may overflow
	}
	return nil
}

func split(p *bnupdate.Plan, r bnupdate.Result, seed, k uint64) [2][]float32 {
	a, b := p.Split(r, rand.New(rand.NewPCG(seed^lossStream, k)))
	return [2][]float32{a, b}
}
