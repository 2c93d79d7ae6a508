package infer_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/swagwrap/swagwrap/calibrate"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/memory"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// members are so many draws from a network's posterior, with the statistics of its
// last checkpoint.
type members struct {
	*infer.Network
	count int
}

func (m members) Parts() []infer.Part { return []infer.Part{{Count: m.count, Graph: m.Graph}} }

func (m members) Each(ctx context.Context, first, count int, f func(infer.Model) error) error {
	opts := swag.SampleOptions{Seed: 1, Scale: 0.5}
	return infer.EachMember(ctx, nil, m.Posterior, opts, first, count, func(k int, parameters weights.Vector) error {
		model, err := m.Model(fmt.Sprintf("member %d", k), parameters, m.Posterior.Statistics)
		if err != nil {
			return err
		}
		return f(model)
	})
}

// small are members of a posterior of two small checkpoints.
func small(t *testing.T, name string, count int) members {
	t.Helper()
	return members{infertest.Network(t, infertest.Fit(t, infertest.Two(t, name)...)), count}
}

// tinyImages are what the small networks take.
func tinyImages(t *testing.T) dataset.Dataset {
	t.Helper()
	return infertest.Data(t, infertest.Path(infertest.Small, "images.npz"), dataset.Options{})
}

// scored are the chunks of a run, one after the other.
type scored struct {
	width            int
	outcome, entropy []float64
	members          []float32
	errs             []error
}

// collect runs models from the given example on.
func collect(t *testing.T, e infer.Run, m infer.MemberSource, data dataset.Dataset, opts infer.Options, first int) *scored {
	t.Helper()
	s, err := infer.NewScorer(t.Context(), e.Engine, m, data, opts)
	if err != nil {
		t.Fatal(err)
	}
	out := &scored{width: s.Task().About().Width}
	err = s.Run(t.Context(), first, nil, func(c *infer.Chunk) error {
		if c.First != first+len(out.errs) {
			t.Errorf("a chunk from %d, want from %d", c.First, first+len(out.errs))
		}
		out.outcome, out.entropy = append(out.outcome, c.Outcome...), append(out.entropy, c.Entropy...)
		out.members, out.errs = append(out.members, c.Members...), append(out.errs, c.Errs...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// flawed is data that counts how often examples are asked for, and of which some
// cannot be read.
type flawed struct {
	dataset.Bytes
	reads  *atomic.Int64
	broken map[int]bool
}

func (c flawed) Read(dst dataset.Values, i int) error {
	if c.broken[i] {
		return fmt.Errorf("image %d: is broken", i)
	}
	return c.Bytes.Read(dst, i)
}

func (c flawed) Pixels(dst []byte, i int) error {
	c.reads.Add(1)
	if c.broken[i] {
		dst[0] = 99
		return fmt.Errorf("image %d: is broken", i)
	}
	return c.Bytes.Pixels(dst, i)
}

// Neither the number of threads nor the memory at hand, which decides about
// chunks and groups of sessions, nor where a run was resumed can be seen in any
// bit of the result; and each image is decoded once.
func TestScorerSameBits(t *testing.T) {
	t.Parallel()
	const count = 5
	rt, m := infertest.Runtime(t), members{infertest.Network(t, infertest.Posterior(t)), count}
	images := infertest.Digits(t, "val.npz").(dataset.Bytes)
	keep := infer.Options{KeepMembers: true, SkipErrors: true}
	var want *scored
	for _, tc := range []struct {
		workers int
		memory  int64
		first   int
		long    bool
	}{
		{1, 1 << 30, 0, false},
		{3, 1 << 30, 0, true},
		{8, 1 << 30, 0, true},
		{2, 1, 0, true},        // a batch a chunk, a session at a time
		{3, 2 << 20, 0, false}, // some of each
		{2, 6 << 20, 0, true},
		{2, 1, 128, false},
		{3, 1 << 30, 1920, false}, // the last batch alone
	} {
		if testing.Short() && tc.long {
			continue
		}
		t.Run(fmt.Sprintf("%d workers, %d bytes, from %d", tc.workers, tc.memory, tc.first), func(t *testing.T) {
			data := flawed{Bytes: images, reads: new(atomic.Int64)}
			got := collect(t, infer.Run{Engine: infer.NewEngine(rt, infer.EngineOptions{Threads: tc.workers, Memory: memory.New(tc.memory)})}, m, data, keep, tc.first)
			if want == nil {
				want = got
			}
			at := tc.first * want.width
			if !slices.Equal(got.outcome, want.outcome[at:]) || !slices.Equal(got.entropy, want.entropy[tc.first:]) || !slices.Equal(got.members, want.members[count*at:]) {
				t.Error("other bits")
			}
			n, first := int64(images.Len()-tc.first), int64(0)
			if tc.first > 0 {
				first = 2 * infer.DefaultBatchSize // two batches from the beginning are the plan's
			}
			if data.reads.Load() < n || data.reads.Load() > n+first || int64(len(got.errs)) != n {
				t.Errorf("%d images decoded, %d results, want %d", data.reads.Load(), len(got.errs), n)
			}
		})
	}

	// The same from bare sessions: the mean of the members' softmax, one image at
	// a time. Sums have the same order, but batches of another size may round
	// differently.
	n := 20
	mean := make([]float64, n*10)
	err := m.Each(t.Context(), 0, count, func(m infer.Model) error {
		s, err := rt.NewFilledSession(t.Context(), m.Filled, ort.Options{})
		if err != nil {
			return err
		}
		defer s.Close()
		for i := range n {
			x := make([]float32, 28*28)
			if err := images.Read(dataset.Floats(x), i); err != nil {
				return err
			}
			out, err := s.Run(t.Context(), []ort.Tensor{{Shape: []int64{1, 1, 28, 28}, F32: x}})
			if err != nil {
				return err
			}
			total, p := 0.0, make([]float64, 10)
			for c, z := range out[0].F32 {
				p[c] = math.Exp(float64(z))
				total += p[c]
			}
			for c := range p {
				mean[i*10+c] += p[c] / total / count
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range mean {
		if math.Abs(want.outcome[i]/count-p) > 1e-6 { // float32 in the networks
			t.Errorf("image %d, class %d: %v, want %v", i/10, i%10, want.outcome[i]/count, p)
		}
		// What is kept of members adds up to the average.
		total := 0.0
		for k := range count {
			total += float64(want.members[(i/10*count+k)*10+i%10]) / count
		}
		if math.Abs(total-want.outcome[i]/count) > 1e-7 { // they are float32
			t.Errorf("image %d, class %d: members' mean %v, want %v", i/10, i%10, total, want.outcome[i]/count)
		}
	}
}

// Images that cannot be read cost their rows, and no other row a bit.
func TestScorerSkips(t *testing.T) {
	t.Parallel()
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 3, Threads: 4})}
	m, images := small(t, "ckpt", 3), tinyImages(t).(dataset.Bytes)
	skip := infer.Options{SkipErrors: true, KeepMembers: true}
	want := collect(t, e, m, images, skip, 0)
	broken := map[int]bool{0: true, 4: true, 9: true} // 9 is a batch of its own
	data := flawed{images, new(atomic.Int64), broken}
	got := collect(t, e, m, data, skip, 0)
	for i, err := range got.errs {
		if broken[i] {
			if err == nil || err.Error() != fmt.Sprintf("image %d: is broken", i) {
				t.Errorf("image %d: error %v", i, err)
			}
			continue
		}
		of := func(s *scored) []float64 { return append(s.outcome[3*i:][:3:3], s.entropy[i]) }
		if err != nil || !slices.Equal(of(got), of(want)) || !slices.Equal(got.members[9*i:][:9], want.members[9*i:][:9]) {
			t.Errorf("image %d: %v, want %v; error %v", i, of(got), of(want), err)
		}
	}

	// Else the first one ends the run.
	for range 20 {
		s, err := infer.NewScorer(t.Context(), e.Engine, m, data, infer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Run(t.Context(), 0, nil, func(*infer.Chunk) error { t.Error("a chunk was handed on"); return nil })
		if err == nil || err.Error() != "image 0: is broken" {
			t.Fatalf("error %v, want that of image 0", err)
		}
	}
}

// What is not finite is never averaged: the error says which model and class.
func TestScorerNotFinite(t *testing.T) {
	t.Parallel()
	m, e := small(t, "brightest", 3), infertest.Run(t)
	black := infertest.Data(t, infertest.Path(infertest.Small, "black.npz"), dataset.Options{}) // image 3 is
	want := m.Posterior.Path + ": member 0: the network's output is not finite: class 0 has -Inf"
	for i, err := range collect(t, e, m, black, infer.Options{SkipErrors: true}, 0).errs {
		if (err != nil) != (i == 3) || err != nil && err.Error() != want {
			t.Errorf("image %d: error %v, want %s for image 3", i, err, want)
		}
	}
	s, err := infer.NewScorer(t.Context(), e.Engine, m, black, infer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Run(t.Context(), 0, nil, func(*infer.Chunk) error { return nil })
	infertest.WantError(t, err, ": member 0: black.npz[3]: the network's output is not finite: class 0 has -Inf")
}

// A network that takes batches of 4 alone gives for 10 images what it gives
// when the last two are followed by any others.
func TestScorerFixedBatch(t *testing.T) {
	t.Parallel()
	e, images := infertest.Run(t), tinyImages(t)
	fixed, free := small(t, "fixed-batch", 3), small(t, "ckpt", 3) // the same weights
	got, want := collect(t, e, fixed, images, infer.Options{}, 0), collect(t, e, free, images, infer.Options{}, 0)
	for i, p := range got.outcome {
		if math.Abs(p-want.outcome[i])/3 > 1e-6 {
			t.Errorf("image %d, class %d: %v, want %v", i/3, i%3, p, want.outcome[i])
		}
	}
}

// watched is data that tells when an example is read.
type watched struct {
	dataset.Bytes
	read func()
}

func (w watched) Pixels(dst []byte, i int) error {
	w.read()
	return w.Bytes.Pixels(dst, i)
}

// A run ends soon after its context, wherever it is: each goroutine ends what it was at, and begins nothing. It hands nothing
// on that is not complete.
func TestScorerCancelled(t *testing.T) {
	t.Parallel()
	const workers = 2
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Memory: memory.New(1), Threads: workers})}
	m := members{infertest.Network(t, infertest.Posterior(t)), 50}
	var reads, runs, late atomic.Int64 // examples read, batches computed, and both after the end
	var ctx context.Context
	var cancel func()
	var stopRead, stopRun int64
	count := func(n *atomic.Int64, stop int64) {
		if ctx.Err() != nil {
			late.Add(1)
		}
		if n.Add(1) == stop {
			cancel()
		}
	}
	progress := func(int) { count(&runs, stopRun) }
	images := watched{infertest.Digits(t, "val.npz").(dataset.Bytes), func() { count(&reads, stopRead) }}
	ctx, cancel = context.WithCancel(t.Context())
	s, err := infer.NewScorer(ctx, e.Engine, m, images, infer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct{ read, run int64 }{{1, 0}, {5, 0}, {0, 1}, {0, 60}} {
		ctx, cancel = context.WithCancel(t.Context())
		stopRead, stopRun = at.read, at.run
		reads.Store(0)
		runs.Store(0)
		late.Store(0)
		next := 0
		err := s.Run(ctx, 0, progress, func(c *infer.Chunk) error {
			if c.First != next || c.Sums.Members != 50 {
				t.Errorf("chunk from %d with %d members, want from %d", c.First, c.Sums.Members, next)
			}
			next += c.Len
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("stopped at %+v: %v", at, err)
		}
		if n := late.Load(); n > 2*workers { // who read, and who computed
			t.Errorf("stopped at %+v: %d examples and batches after the end", at, n)
		}
	}
	stopRead, stopRun = 0, 0
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	// What the sink says ends it, too.
	no := errors.New("no")
	if err := s.Run(t.Context(), 0, nil, func(*infer.Chunk) error { return no }); !errors.Is(err, no) {
		t.Errorf("error %v, want the sink's", err)
	}
}

// The sums of Predict are those of one model, over all its chunks.
func TestPredict(t *testing.T) {
	t.Parallel()
	e := infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{BatchSize: 3, Memory: memory.New(1)})}
	images := tinyImages(t)
	n := infertest.Network(t, infertest.Posterior(t)) // of any network: it says what scores mean
	model := func(name string, weight float64) infer.Model {
		t.Helper()
		m, err := n.AsIs(infertest.Open(t, infertest.Path(infertest.Small, name)))
		if err != nil {
			t.Fatal(err)
		}
		m.Weight = weight
		return m
	}
	sums := &infer.Sums{}
	var mean [30]float64
	for i, w := range []float64{1, 3} {
		m, alone := model(fmt.Sprintf("ckpt-%d.onnx", i+1), w), &infer.Sums{}
		for _, s := range []*infer.Sums{sums, alone} {
			if err := e.Predict(t.Context(), m, images, s); err != nil {
				t.Fatal(err)
			}
		}
		for k, p := range alone.Mean() {
			mean[k] += w / 4 * p
		}
	}
	if sums.Members != 2 || sums.Weight != 4 || sums.Task.About().Width != 3 {
		t.Errorf("%d members of weight %v, %s", sums.Members, sums.Weight, sums.Task.About().Size)
	}
	for k, p := range sums.Mean() {
		if math.Abs(p-mean[k]) > 1e-15 {
			t.Errorf("probability %d: %v, want %v", k, p, mean[k])
		}
	}
	total := 0.0
	for _, p := range sums.Mean()[:3] {
		total += p
	}
	if math.Abs(total-1) > 1e-15 || calibrate.Entropy(sums.Mean()[:3]) == 0 {
		t.Errorf("probabilities %v", sums.Mean()[:3])
	}
	kept, release := model("ckpt-1.onnx", 1).Keep()
	defer release()
	var again [2]infer.Sums
	var opened [2]*infer.Session
	for i := range again {
		if err := e.Predict(t.Context(), kept, images, &again[i]); err != nil {
			t.Fatal(err)
		}
		opened[i] = kept.Opened()
	}
	if opened[0] == nil || opened[0] != opened[1] || !slices.Equal(again[0].Outcome, again[1].Outcome) {
		t.Errorf("sessions %p and %p, want the same; outcomes %v and %v", opened[0], opened[1], again[0].Outcome, again[1].Outcome)
	}
	four := model("four-classes-1.onnx", 1)
	err := e.Predict(t.Context(), four, images, sums)
	infertest.WantError(t, err, four.Name+`: tensor "logits": 4 classes, want 3 classes as in `+infertest.Path(infertest.Small, "ckpt-1.onnx"))
}

// Networks whose graphs do not tell are caught when they predict.
func TestClassesDiffer(t *testing.T) {
	t.Parallel()
	three, err := task.New("", task.OutputSpec{Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	sums, data := &infer.Sums{}, infertest.Digits(t, "val.npz")
	sums.Init("e: member 0 of p", data.Len(), three)
	m, err := infertest.Network(t, infertest.Posterior(t)).AsIs(infertest.Checkpoints(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	m.Name = "e: member 1 of q"
	err = infertest.Run(t).Predict(t.Context(), m, data, sums)
	infertest.WantError(t, err, `e: member 1 of q: tensor "logits": 10 classes, want 3 classes as in e: member 0 of p`)
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Error("the error has more than one line")
	}
	if sums.Members != 0 || sums.Weight != 0 {
		t.Errorf("counted all the same: %+v", sums.Members)
	}
}

// What is printed of the plan, and of images that went through.
func TestPlan(t *testing.T) {
	t.Parallel()
	seen := new(atomic.Int64)
	e := infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 2, BatchSize: 4, Memory: memory.New(1 << 30)})
	m := small(t, "ckpt", 3)
	s, err := infer.NewScorer(t.Context(), e, m, tinyImages(t), infer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Plan(), "2 threads; batches of 4, chunks of 12; sessions all opened once"; got != want {
		t.Errorf("plan %q, want %q", got, want)
	}
	if s.Members() != 3 || !slices.Equal(s.BatchSizes(), []int{4}) || m.Known() != s.Task() || s.Task().About().Width != 3 {
		t.Errorf("%d members in batches of %v, %v", s.Members(), s.BatchSizes(), s.Task())
	}
	count := func(images int) { seen.Add(int64(images)) }
	if err := s.Run(t.Context(), 0, count, func(*infer.Chunk) error { return nil }); err != nil || seen.Load() != 30 {
		t.Errorf("%d images went through networks, want 30; %v", seen.Load(), err)
	}
	e = infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 2, BatchSize: 4, Memory: memory.New(1)})
	if s, err = infer.NewScorer(t.Context(), e, m, tinyImages(t), infer.Options{}); err != nil || !strings.HasSuffix(s.Plan(), "sessions opened for each chunk, 1 at a time") {
		t.Errorf("with hardly any memory: %q, %v", s.Plan(), err)
	}
	if n, err := s.Tune(t.Context(), 2); err != nil || n != 1 && n != 2 {
		t.Errorf("%d runs at the same time, %v", n, err)
	}
}

// counting are members that note how many images went through networks before each of them was made.
type counting struct {
	members
	seen *atomic.Int64
	made map[int]int64
}

func (c counting) Each(ctx context.Context, first, count int, f func(infer.Model) error) error {
	k := first
	return c.members.Each(ctx, first, count, func(m infer.Model) error {
		c.made[k] = c.seen.Load()
		k++
		return f(m)
	})
}

// Sessions of large networks do not wait: on one thread each is closed before the next member is made, and on several threads one
// is opened ahead. Small ones are opened once for all chunks. The bits are the same.
func TestOneSessionAtATime(t *testing.T) {
	const count, images = 5, 10
	m := small(t, "ckpt", count)
	var want []float64
	for _, c := range []struct {
		threads, ahead int
		budget         int64
	}{{1, count, 1 << 30}, {1, 0, 4 << 20}, {2, 1, 4 << 20}, {1, 0, 1}} {
		source := counting{m, new(atomic.Int64), map[int]int64{}}
		e := infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: c.threads, BatchSize: 4, Memory: memory.New(c.budget)})
		s, err := infer.NewScorer(t.Context(), e, source, tinyImages(t), infer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if resident := c.ahead == count; resident != strings.HasSuffix(s.Plan(), "all opened once") {
			t.Errorf("%+v: %s", c, s.Plan())
		}
		var got []float64
		err = s.Run(t.Context(), 0, func(n int) { source.seen.Add(int64(n)) }, func(c *infer.Chunk) error {
			got = append(got, c.Outcome...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		} else if !slices.Equal(got, want) {
			t.Errorf("%+v: other outcomes", c)
		}
		for k := range count {
			if least := int64(images * (k - c.ahead)); source.made[k] < least {
				t.Errorf("%+v: member %d was made after %d images, want at least %d", c, k, source.made[k], least)
			}
		}
	}
}

// When sessions stay open: if they are small, or if opening them for each of several chunks would take too long.
func TestWhenSessionsStay(t *testing.T) {
	t.Parallel()
	m := small(t, "ckpt", 30)
	e := infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 2, BatchSize: 16, Memory: memory.New(2 << 30)})
	many := dataset.Picked(tinyImages(t), slices.Repeat([]int{0, 1}, 5000))
	for _, c := range []struct {
		bytes     int64
		open, run time.Duration
		data      dataset.Dataset
		stay      bool
	}{
		{1 << 20, time.Second, time.Millisecond, many, true},
		{40 << 20, 200 * time.Millisecond, 20 * time.Millisecond, many, false},
		{40 << 20, time.Second, time.Millisecond, many, true},           // each chunk has 4,096 examples at most
		{40 << 20, time.Second, time.Millisecond, tinyImages(t), false}, // there is one chunk
		{1 << 30, time.Second, time.Millisecond, many, false},           // there is no room for all
	} {
		s, err := infer.NewScorer(t.Context(), e, m, c.data, infer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		for workers := 1; workers <= 2; workers++ {
			how, groups, ahead, err := s.Planned(workers, c.bytes, c.open, c.run)
			if stay := strings.HasSuffix(how, "all opened once"); err != nil || stay != c.stay || !stay && (groups != 30 || ahead != workers) {
				t.Errorf("%+v, %d threads: %s; %d groups, %d at the same time; %v", c, workers, how, groups, ahead, err)
			}
		}
	}
}

// Sums of different members add up to those of all.
func TestMerge(t *testing.T) {
	t.Parallel()
	two, err := task.New("", task.OutputSpec{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	var all infer.Sums
	for k, p := range []float64{0.25, 0.75} {
		one := infer.Sums{Members: 1, Weight: float64(k + 1)}
		one.Init("member", 2, two)
		one.Add(0, []float64{p, 1 - p}, p, one.Weight)
		one.Add(1, []float64{1 - p, p}, 1-p, one.Weight)
		all.Merge(&one)
	}
	a, b := (0.25+2*0.75)/3, (0.75+2*0.25)/3
	near := func(x, y float64) bool { return math.Abs(x-y) < 1e-15 }
	if all.Members != 2 || all.Weight != 3 || !slices.EqualFunc(all.Mean(), []float64{a, b, b, a}, near) || !slices.EqualFunc(all.ExpectedEntropy(), []float64{a, b}, near) {
		t.Errorf("%+v", all)
	}
	if got := all.Average(make([]float64, 2), 1); !slices.EqualFunc(got.Outcome, []float64{b, a}, near) || !near(got.Entropy, b) {
		t.Errorf("%+v", got)
	}
}
