package sweep

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate/chance"
	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
)

// The setting that is chosen is the one whose plain average has the least NLL over all
// temperatures, by a search that knows nothing of the fit. There is no test data.
func TestTune(t *testing.T) {
	t.Parallel()
	s := quickSweep(t)
	s.Test, s.Members, s.Validation = nil, 2, dataset.Subset(s.Validation, dataset.Order{Limit: 100})
	seen := int64(0)
	got, err := s.Tune(t.Context(), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1}), Progress: func(images int) { seen += int64(images) }})
	if err != nil {
		t.Fatal(err)
	}
	if want := s.TuneImages(); seen != want || want < 1000 {
		t.Errorf("%d images went through networks, %d were announced", seen, want)
	}
	on := *s
	on.Test = s.Validation
	best, least, temperature, candidates := Setting{}, math.Inf(1), 0.0, 0
	for _, set := range s.Settings() {
		if set.Stale {
			continue
		}
		candidates++
		members := s.Members
		if set.SWA() {
			members = 1
		}
		p := plainAverage(t, infertest.Run(t), &on, s.Draws(set), members, false).Mean()
		for k := range 400 {
			beta := math.Exp(float64(k)/100 - 2.5) // 1/T
			nll := 0.0
			for i, label := range s.Validation.Labels().Classes {
				norm := 0.0
				for _, v := range p[10*i:][:10] {
					norm += math.Pow(v, beta)
				}
				nll += (math.Log(norm) - beta*math.Log(p[10*i+label])) / float64(s.Validation.Len())
			}
			if nll < least {
				best, least, temperature = set, nll, 1/beta
			}
		}
	}
	if got.Setting != best || math.Abs(got.NLL-least) > 1e-4 || math.Abs(got.Temperature-temperature) > 2e-2*temperature || got.Candidates != candidates || got.Examples != 100 {
		t.Errorf("%+v, a search finds %v with NLL %v at T = %v of %d settings", got, best, least, temperature, candidates)
	}
	if !(got.Share > 0 && got.Share <= 1) {
		t.Errorf("the best in %v of the resamples", got.Share)
	}
	// The sweep itself makes the same choice of the same data, whatever the test data are.
	s.Test = dataset.Subset(infertest.Digits(t, "test.npz"), dataset.Order{Limit: 50})
	r, err := s.Run(t.Context(), infertest.Run(t))
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Choice; c.Setting != got.Setting || c.Temperature != got.Temperature || c.NLL != got.NLL || c.Share != got.Share || c.Candidates != got.Candidates {
		t.Errorf("sweep chooses %+v, tune %+v", c, got)
	}
	// And without validation data, of the same data as test data.
	s.Test, s.Validation = s.Validation, nil
	if r, err = s.Run(t.Context(), infertest.Run(t)); err != nil {
		t.Fatal(err)
	}
	if c := r.Choice; c.Setting != got.Setting || c.Temperature != got.Temperature || c.NLL != got.NLL {
		t.Errorf("sweep chooses %+v on test data, tune %+v", c, got)
	}
}

// classes is data of which only the classes are known.
type classes struct {
	dataset.Dataset
	of []int
}

func (d classes) Len() int              { return len(d.of) }
func (d classes) Shape() []int64        { return []int64{1} }
func (d classes) Labels() target.Target { return target.Target{Classes: d.of} }

// outcome returns the sums of one member with the given logits, n×k.
func outcome(k task.Task, logits []float64) *infer.Sums {
	s, width := &infer.Sums{}, k.About().Width
	s.Init("member", len(logits)/width, k)
	for i := range s.Entropy {
		row, norm := make([]float64, width), 0.0
		for c := range row {
			row[c] = math.Exp(logits[i*width+c])
			norm += row[c]
		}
		for c := range row {
			row[c] /= norm
		}
		s.Add(i, row, 0, 1)
	}
	s.Members, s.Weight = 1, 1
	return s
}

// made returns a result for made-up members. Each setting has members, n×k logits each. Without validation data they
// are for the test data.
func made(t *testing.T, k task.Task, test, validation []int, settings []Setting, logits func(setting, member int, validation bool) []float64, members int) *Result {
	t.Helper()
	r := &Result{Sweep: &Sweep{Test: classes{of: test}, Seed: 1, Network: &infer.Network{Posterior: &swag.Posterior{Options: swag.Options{Columns: 20}}}}, task: k}
	if validation != nil {
		r.Validation = classes{of: validation}
	}
	for range members {
		r.weights = append(r.weights, 1)
	}
	for i, set := range settings {
		a, p := &average{}, Point{Setting: set, Members: members, Default: i == standard, Temperature: math.NaN()}
		for m := range members {
			a.test.add(outcome(k, logits(i, m, false)), map[bool]int{false: 1}[set.SWA()])
			if validation != nil {
				a.validation.add(outcome(k, logits(i, m, true)), map[bool]int{false: 1}[set.SWA()])
			}
			if set.SWA() {
				break
			}
		}
		if err := r.score(&p, a); err != nil {
			t.Fatal(err)
		}
		r.Points = append(r.Points, p)
	}
	r.choose()
	return r
}

func ofClasses(t *testing.T, k int) task.Task {
	t.Helper()
	out, err := task.New("", task.OutputSpec{Output: "logits", Count: k})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The NLL of an average at its best temperature is that of SciPy:
//
//	P = mean over m of softmax(4·sin(1.7i + 2.3c + 0.9m)), i < 60, c < 4, m < 3
//	y = 7i mod 4 for every third i, argmax P for others
//	minimize_scalar(lambda u: nll(log(P)/exp(u)), bounds=(-3, 3), method='bounded', options={'xatol': 1e-12})
func TestBestTemperature(t *testing.T) {
	t.Parallel()
	const n, width, temperature, nll = 60, 4, 1.9096811026054084, 1.1146860167463153
	labels, logits := make([]int, n), func(_, m int, _ bool) (out []float64) {
		for i := range n {
			for c := range width {
				out = append(out, 4*math.Sin(1.7*float64(i)+2.3*float64(c)+0.9*float64(m)))
			}
		}
		return out
	}
	k := ofClasses(t, width)
	all := &infer.Sums{}
	for m := range 3 {
		all.Merge(outcome(k, logits(0, m, false)))
	}
	for i := range labels {
		row := all.Mean()[i*width:][:width]
		if labels[i] = floats.MaxIdx(row); i%3 == 0 {
			labels[i] = 7 * i % width
		}
	}
	r := made(t, k, labels, labels, []Setting{{}, {Scale: 0.5, Rank: 20}}, logits, 3)
	// T is rounded to five digits, which changes the NLL by the square of that.
	if p := r.Default(); math.Abs(p.Temperature-temperature) > 1e-4 || math.Abs(p.NLL-nll) > 1e-8 || math.Abs(p.Validation.Value("nll")-nll) > 1e-8 || math.Abs(p.Value("nll")-nll) > 1e-8 {
		t.Errorf("NLL %v at T = %v, want %v at %v", p.NLL, p.Temperature, nll, temperature)
	}
}

// A network is too sure of itself. Noise of the weights lowers its confidence, and harms it otherwise. At T = 1 the largest
// scale is the best, at the best temperature the smallest is. The choice does not go to the edge.
func TestScaleIsNoTemperature(t *testing.T) {
	t.Parallel()
	const n, width, sharp = 1500, 5, 3.0
	rng := rand.New(rand.NewPCG(1, 2))
	labels, logits := make([]int, n), make([]float64, n*width)
	for i := range labels {
		row, total := logits[i*width:][:width], 0.0
		for c := range row {
			row[c] = 2 * rng.NormFloat64()
			total += math.Exp(row[c])
		}
		u := rng.Float64() * total
		for c, v := range row {
			if u -= math.Exp(v); u < 0 || c == width-1 {
				labels[i] = c
				break
			}
		}
	}
	scales := []float64{0, 0.5, 0.125, 0.25, 1, 2}
	settings := []Setting{}
	for _, scale := range scales {
		set := Setting{Scale: scale, Rank: 20}
		settings = append(settings, set.normal())
	}
	of := func(s, m int, _ bool) (out []float64) {
		noise := rand.New(rand.NewPCG(3, uint64(m))) // common to all scales
		for _, z := range logits {
			out = append(out, sharp*(z+0.7*math.Sqrt(scales[s])*noise.NormFloat64()))
		}
		return out
	}
	k := ofClasses(t, width)
	for _, validation := range [][]int{nil, labels} {
		r := made(t, k, labels, validation, settings, of, 12)
		worst, plain := math.Inf(1), 0.0 // the lowest NLL at T = 1
		for s := range settings {
			all := &infer.Sums{}
			for m := range 12 {
				all.Merge(outcome(k, of(s, m, false)))
			}
			if nll := task.NLL(k, all.Mean(), r.Test.Labels()); nll < worst {
				worst, plain = nll, scales[s]
			}
		}
		if plain != 2 {
			t.Fatalf("at T = 1 scale %v is the best: the population is not what it is to be", plain)
		}
		c := r.Choice
		// SWA and the smallest scale are nearly equal.
		if max(c.Scale, c.Halves[0].Scale, c.Halves[1].Scale) > 0.125 || !c.Better() || math.Abs(c.Temperature-sharp) > 0.3 /* four standard errors */ {
			t.Errorf("validation %v: %+v", validation != nil, c)
		}
	}
}

// Two settings have members of the same distribution, with other draws. A call that one is better is an error. Few draws
// of many images make it often if only the images count.
func TestDrawsCount(t *testing.T) {
	t.Parallel()
	const n, width, members, repeats = 500, 3, 10, 60
	k, rng := ofClasses(t, width), rand.New(rand.NewPCG(8, 9))
	better, images := 0, 0
	for range repeats {
		labels, logits := make([]int, n), make([]float64, n*width)
		for i := range labels {
			labels[i] = rng.IntN(width)
			for c := range width {
				logits[i*width+c] = rng.NormFloat64()
			}
			logits[i*width+labels[i]] += 1.5
		}
		shifts := make([]float64, 2*members*width)
		for j := range shifts {
			shifts[j] = rng.NormFloat64()
		}
		r := made(t, k, labels, nil, []Setting{{}, {Scale: 0.5, Rank: 20}, {Scale: 0.25, Rank: 20}}, func(s, m int, _ bool) []float64 {
			if s == 0 {
				return make([]float64, n*width) // SWA is the worst here
			}
			out := slices.Clone(logits)
			for j := range out {
				out[j] += shifts[((s-1)*members+m)*width+j%width]
			}
			return out
		}, members)
		if r.Choice.Better() {
			better++
		}
		if d := chance.NewDifference(minus(r.Points[2].judged.own, r.Default().judged.own), 0); d.High < 0 {
			images++
		}
	}
	t.Logf("better by images and draws in %d of %d, by images in %d", better, repeats, images)
	// 2.5 % of 60 and four standard errors more.
	if better > 6 || images < 7 {
		t.Errorf("a setting is called better in %d of %d cases, by the images alone in %d", better, repeats, images)
	}
}

// The neighbours of a choice are the next scales and ranks that were not tried.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	s := &Sweep{Scales: UsualScales, Ranks: UsualRanks(20), Network: &infer.Network{Posterior: &swag.Posterior{Options: swag.Options{Columns: 20}}}}
	r := &Result{Sweep: s}
	tried := []Setting{{}, {Scale: 0.5, Rank: 20}, {Scale: 1, Rank: 20}, {Scale: 2, Rank: 20}, {Scale: 0.5, Rank: 10}, {Scale: 0.125, Covariance: swag.Diagonal}, {Scale: 0.125, Rank: 20}}
	for _, set := range tried {
		r.Points = append(r.Points, Point{Setting: set})
	}
	for _, c := range []struct {
		at   Setting
		want string
	}{
		{Setting{}, "[]"},
		{Setting{Scale: 1, Rank: 20}, "[SWAG, scale 1, rank 10]"},
		{Setting{Scale: 2, Rank: 20}, "[SWAG, scale 4, rank 20 SWAG, scale 2, rank 10]"},
		{Setting{Scale: 0.125, Rank: 20}, "[SWAG, scale 0.125, rank 10]"},
		{Setting{Scale: 0.5, Rank: 10}, "[SWAG, scale 0.125, rank 10 SWAG, scale 1, rank 10 SWAG, scale 0.5, rank 5]"},
		{Setting{Scale: 0.125, Covariance: swag.Diagonal}, "[SWAG-Diag, scale 0.5 SWAG, scale 0.125, rank 2]"},
	} {
		r.Choice.Setting = c.at
		if got := fmt.Sprint(r.neighbours()); got != c.want {
			t.Errorf("%v: %v, want %v", c.at, got, c.want)
		}
	}
}

// A sweep extends its grid until the choice lies inside, and not more often than it may. It announces what that costs.
func TestExtend(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 1, 8} {
		s := quickSweep(t)
		s.Members, s.Extend, s.Scales, s.Ranks, s.Test = 2, most, []float64{0, 0.01}, []int{0, 5, 10}, dataset.Subset(s.Test, dataset.Order{Limit: 50})
		s.BatchNorm.Order.Limit = 64
		seen, total, rounds := int64(0), int64(0), 0
		s.Resize = func(images int64) { total = images }
		s.Announce = func(_ Setting, next []Setting, images int64) {
			if rounds++; len(next) == 0 || images < int64(len(next))*(50+200+64) {
				t.Errorf("%d images for %v", images, next)
			}
		}
		r, err := s.Run(t.Context(), infer.Run{Engine: infer.NewEngine(infertest.Runtime(t), infer.EngineOptions{Threads: 1}), Progress: func(images int) { seen += int64(images) }})
		if err != nil {
			t.Fatal(err)
		}
		if seen != total || rounds > most || rounds < most && len(r.neighbours()) > 0 || len(r.Choice.Untried) != len(r.neighbours()) {
			t.Errorf("at most %d: %d rounds, %d images of %d, untried %v of %v", most, rounds, seen, total, r.Choice.Untried, r.Choice.Setting)
		}
		if inside := !strings.Contains(r.Choice.String(), "the edge of what was tried"); inside != (len(r.Choice.Untried) == 0) {
			t.Errorf("%v", &r.Choice)
		}
		t.Logf("at most %d extensions: %d, %v", most, rounds, r.Choice.Setting)
	}
}

// One member says nothing about other draws, and the diagonal alone has a default of its own.
func TestSweepOneMember(t *testing.T) {
	t.Parallel()
	s := quickSweep(t)
	s.Members, s.Validation, s.Scales, s.Ranks = 1, nil, []float64{4}, nil
	s.Test = dataset.Subset(s.Test, dataset.Order{Limit: 60})
	r, err := s.Run(t.Context(), infertest.Run(t))
	if err != nil {
		t.Fatal(err)
	}
	p := r.Points[2]
	if !math.IsInf(p.Difference.Low, -1) || !math.IsInf(p.Difference.High, 1) || r.Choice.Better() {
		t.Errorf("%v: %+v, choice %+v", p, p.Difference, r.Choice)
	}
	r.Statistics.Records = []*batchnorm.Record{nil}
	if _, err := json.Marshal(shown{r}.all()); err != nil {
		t.Error(err)
	}
}
