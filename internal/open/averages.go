package open

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/averages"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/programs"
	"github.com/swagwrap/swagwrap/internal/progress"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// Averages says what happens to averages among the checkpoints.
type Averages string

const (
	AskAverages  Averages = "ask"  // proven ones are left out, and where names alone say so the command ends
	KeepAverages Averages = "keep" // all are taken
	DropAverages Averages = "drop" // those of which only names say so are left out, too
)

// sampleWeights is the number of weights by which averages are found. It is large enough for 300 checkpoints, and small beside a
// fit. Of very many checkpoints fewer are read.
const (
	sampleWeights = 1 << 15
	sampleValues  = 1 << 24
)

// checkContents refuses checkpoints that are given twice, that the older posterior has already, or that have changed
// since it was fitted.
func (s *FitInputs) checkContents() error {
	var sums []string
	for i, ck := range s.Checkpoints {
		sums = append(sums, ck.SHA256)
		if i < s.older {
			p := s.previous.Posterior
			if old := p.Models()[i].SHA256; ck.SHA256 != old {
				return BadInput(fmt.Errorf("%s: its content has the SHA-256 %s, but %s was fitted to %s", ck, ck.SHA256, p.Path, old))
			}
		}
		if s.Previous == nil {
			continue
		}
		for _, old := range s.Previous.Checkpoints {
			if ck.SHA256 == old.SHA256 {
				return BadInput(fmt.Errorf("%s: is in %s already, as %s", ck, s.Previous.Path, old.Path), "give the checkpoints since then")
			}
		}
	}
	twins := checkpoints.Twins(sums)
	if len(twins) == 0 {
		return nil
	}
	if s.leaveCopies(twins) {
		return s.checkContents()
	}
	a, b := s.models[twins[0][0]], s.models[twins[0][1]]
	err := fmt.Errorf("%s: has the same content as %s", b.Path, a.Path)
	if a.Path == b.Path {
		err = fmt.Errorf("%s: is given twice", a.Path)
	}
	return BadInput(err, checkpoints.GivenOnce(a, b))
}

// matchIterates pairs the tensors of the checkpoints that are no averages, or of the last ones. named says that the order is that of
// the names.
func (s *FitInputs) matchIterates(named bool) (set *checkpoints.Set, graph *onnxio.Model, err error) {
	left := false
	set, graph, err = s.match()
	if e := (*checkpoints.TwinsError)(nil); s.Previous == nil && errors.As(err, &e) && s.leaveCopies(e.Pairs) {
		left = true
		set, graph, err = s.match()
	}
	if err != nil {
		return nil, nil, err
	}
	averages, err := s.leaveAverages(set)
	if err != nil {
		return nil, nil, err
	}
	if named {
		s.orderKept()
	}
	if last := keepLast(s); left || averages || last {
		return s.match()
	}
	return set, graph, nil
}

// keepLast removes the checkpoints before the last ones, if only those are asked for. All were needed to tell averages from iterates.
func keepLast(s *FitInputs) bool {
	first := 0
	if countsTheta0(s) {
		first = 1
	}
	all := len(s.models) - first
	more := all - s.options.Last
	if s.options.Last == 0 || more <= 0 {
		return false
	}
	for range more {
		s.leave(first)
	}
	s.Logf("the last %d of %d checkpoints are taken, from %s on (%s)", s.options.Last, all, s.models[first].Path, setting.Last)
	return true
}

// match pairs the tensors of all checkpoints. It returns the model with the graph of the network. When a posterior is
// continued, this may be nil: then the posterior's own graph is used.
func (s *FitInputs) match() (set *checkpoints.Set, graph *onnxio.Model, err error) {
	if s.Previous != nil {
		set, err = s.previous.Continue(s.models)
	} else {
		set, err = checkpoints.New(s.models, s.options.Roles...)
	}
	if err == nil && set.Reference >= 0 {
		graph = set.Models[set.Reference]
	}
	return set, graph, err
}

// leaveAverages removes the averages among the checkpoints. It reports whether there were some, so the rest must be matched
// again.
func (s *FitInputs) leaveAverages(set *checkpoints.Set) (left bool, err error) {
	c := s.candidates()
	if len(c.paths)-c.first < 2 {
		return false, nil
	}
	values, err := set.Sample(min(sampleWeights, sampleValues/len(s.models)))
	if err != nil || s.models[0].Path != set.Models[0].Path {
		return false, err
	}
	found, err := c.averages(values)
	for _, a := range slices.Backward(found) {
		s.leave(a.at)
	}
	return len(found) > 0, err
}

// candidates returns the checkpoints as those among which there may be averages.
func (s *FitInputs) candidates() *candidates {
	c := &candidates{Opener: s.Opener, how: s.options.Averages, first: s.first(), moments: s.moments}
	c.keeps = func(found string) {
		s.warn([]string{fmt.Sprintf("averages of checkpoints are among the checkpoints (%s): %s. The posterior is narrower than its "+
			"iterates say", setting.Averages.With(string(KeepAverages)), found)})
	}
	for _, m := range s.models {
		c.paths, c.marks = append(c.paths, m.Path), append(c.marks, s.source.counts(m).Average.Mark)
	}
	return c
}

// leaveCopies removes checkpoints with the same weights as others.
func (s *FitInputs) leaveCopies(of []checkpoints.Pair) bool {
	copies := s.candidates().copies(slices.DeleteFunc(slices.Clone(of), func(p checkpoints.Pair) bool {
		return checkpoints.SharedData(s.models[p[0]], s.models[p[1]])
	}))
	for _, at := range slices.Backward(copies) {
		s.leave(at)
	}
	return len(copies) > 0
}

// first returns the place of the first checkpoint that was given, behind θ0 and those of an older posterior.
func (s *FitInputs) first() int {
	if s.options.Theta0 != "" {
		return 1
	}
	return s.older
}

// leave removes a checkpoint.
func (s *FitInputs) leave(at int) {
	m := s.models[at]
	if at < s.older {
		s.older--
	}
	s.source.Template.Leave(m.Path)
	m.Close()
	s.models, s.Checkpoints = slices.Delete(s.models, at, at+1), slices.Delete(s.Checkpoints, at, at+1)
}

// orderKept puts the kept checkpoints in the order that their names tell, and says what decided, or why the order may be wrong. Those
// that were left out may have had other names.
func (s *FitInputs) orderKept() {
	first := s.first()
	var paths []string
	for _, m := range s.models[first:] {
		paths = append(paths, m.Path)
	}
	order := progress.Sort(paths)
	switch given := setting.Order.With("given"); {
	case order.Doubt != "":
		s.Warnf("the order of the checkpoints may not be that of training: %s (%s takes them as given)", order.Doubt, given)
	case order.By != "":
		s.Logf("the checkpoints are taken in the order of the numbers behind %s in their names (%s takes them as given)", order.By, given)
	}
	models, of := slices.Clone(s.models), slices.Clone(s.Checkpoints)
	for i, path := range order.Paths {
		at := first + slices.Index(paths, path)
		s.models[first+i], s.Checkpoints[first+i] = models[at], of[at]
	}
}

// notIterates warns of PyTorch checkpoints that are not iterates of one run. They are averages, or their batch norm has
// counted equally many training batches although it computed different statistics.
func (s *FitInputs) notIterates(statistics [][]float32) {
	last := s.models[len(s.models)-1]
	c, many := s.source.counts(last), len(s.models) > 1
	switch {
	case c.ScheduleFree == statefile.TrainingMode:
		s.warn([]string{fmt.Sprintf("%s was saved while its schedule-free optimizer was in training mode: the weights are between its "+
			"iterates and their average, and no evaluation uses them. "+
			"In Python: optimizer.eval() before torch.save. For a saved file, load the network and the optimizer, call optimizer.eval() "+
			"and save the network", last.Path)})
	case c.ScheduleFree == statefile.EvaluationMode && many:
		s.warn([]string{fmt.Sprintf("%s was saved in evaluation mode of a schedule-free optimizer: the weights are the average of its "+
			"iterates, and vary less than these. "+
			"In Python, the iterates are {n: optimizer.state[p]['z'] for n, p in model.named_parameters()}. Save them beside the other "+
			"entries of the state_dict", last.Path)})
	case c.Average.Mark != "" && many:
		iterates := "Give checkpoints of these, and the average as " + setting.Mean.String()
		if c.Average.Iterate != "" {
			iterates = setting.StateDict.With(c.Average.Iterate) + " takes these"
		}
		s.warn([]string{fmt.Sprintf("%s is an average of weights (%s). Averages vary less than the weights that SGD moves. %s",
			s.Checkpoints[len(s.Checkpoints)-1], c.Average.Mark, iterates)})
		return
	case c.Average.Mark != "" && len(statistics[len(statistics)-1]) > 0:
		s.warn([]string{fmt.Sprintf("%s is an average of weights (%s). Its batch-norm statistics belong to it only if "+
			"torch.optim.swa_utils.update_bn has computed them", s.Checkpoints[len(s.Checkpoints)-1], c.Average.Mark)})
	case many && !c.Average.Iterates:
		s.averageKey(last)
	}
	s.sameBatches(statistics)
}

// averageKey tells of checkpoints whose key, or whose only network's names, say average.
func (s *FitInputs) averageKey(last *onnxio.Model) {
	c := s.source.counts(last)
	key, others := c.Key, slices.DeleteFunc(slices.Clone(c.Others), func(o string) bool { return averages.Word(o) != "" })
	word := averages.Word(key)
	if word == "" && !strings.Contains(key, "shadow") {
		return
	}
	what := fmt.Sprintf("the weights of the checkpoints are under %q, so they are moving averages, which vary less than the weights "+
		"that SGD moves: the posterior is too narrow. ", key)
	if len(others) > 0 {
		what += setting.StateDict.With(others[0]) + " takes others of the same files"
	} else {
		what += "Save model.state_dict() at the end of each epoch, too, and give that"
	}
	if s.options.Source.StateDict.Set {
		s.Logf("%s", what)
		return
	}
	s.warn([]string{what})
}

// sameBatches warns of checkpoints that have seen equally many training batches, with other statistics.
func (s *FitInputs) sameBatches(statistics [][]float32) {
	first := make(map[int64]int)
	for i, m := range s.models {
		c, batches := s.Checkpoints[i], s.source.counts(m).Batches
		if batches < 1 {
			return
		}
		k, ok := first[batches]
		if !ok {
			first[batches] = i
			continue
		}
		if !slices.Equal(statistics[k], statistics[i]) {
			s.warn([]string{fmt.Sprintf("%s and %s have seen equally many training batches (num_batches_tracked is %d), so they are of "+
				"different runs, or one is an average. "+
				"If the runs began at different networks, SWA and SWAG are useless. A deep ensemble of the checkpoints is not: %s",
				s.Checkpoints[k], c, batches, setting.Line(setting.Sample.With(setting.Method.With("iterates"))))})
			return
		}
	}
}

// openMean opens the given mean, FILE or KEY=FILE, and computes its SHA-256. The checkpoints must be open, because
// they prove which tensor is which.
func (s *FitInputs) openMean(ctx context.Context) (err error) {
	path := s.options.Mean
	if path == "" {
		return nil
	}
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	key := ""
	if k, file, ok := strings.Cut(path, "="); ok && !exists(path) && exists(file) {
		key, path = k, file
	}
	source := *s.source
	if source.Template != nil {
		if key == "" {
			keys, marked := stateDicts(path)
			key = averageKey(keys, marked, source.Template.StateDict)
		} else if key, err = networkUnder(path, key); err != nil {
			return err
		}
		source.Template = source.Template.Under(key)
	}
	models, err := source.Open([]string{path})
	if err != nil {
		return err
	}
	s.mean = models[0]
	sums, err := checkpoints.Sums(ctx, models, func(int) {})
	if err != nil {
		return err
	}
	s.Mean = &swag.Checkpoint{Path: file.RelativeTo(s.options.Output, path), Given: path, SHA256: sums[0], StateDict: source.key(s.mean)}
	for _, c := range s.Checkpoints {
		if c.SHA256 == s.Mean.SHA256 && c.StateDict == s.Mean.StateDict {
			return BadInput(fmt.Errorf("%s: is one of the checkpoints, %s, and no average of them", path, c),
				"leave it out of the checkpoints, or leave out "+setting.Mean.String())
		}
	}
	return nil
}

// networkUnder returns the key, or that of the average if there are several networks under it. It fails if a PyTorch file has nothing
// there.
func networkUnder(path, key string) (string, error) {
	f, err := statefile.Open(path)
	if err != nil {
		return key, nil // opening the mean reports the error
	}
	defer f.Close()
	sd, err := f.StateDict(key)
	if err == nil {
		return averageKey(sd.NetworkKeys(), "", key), nil
	}
	elsewhere := func(sd *statefile.StateDict) bool { return !strings.HasPrefix(sd.Key, key+"/") }
	under := slices.DeleteFunc(slices.Clone(f.StateDicts()), elsewhere)
	if len(under) == 1 {
		return under[0].Key, nil
	}
	return "", BadInput(err)
}

// stateDicts returns the keys of the networks in a PyTorch file. marked is the key that the file itself calls an average, or "".
func stateDicts(path string) (keys []string, marked string) {
	f, err := statefile.Open(path)
	if err != nil {
		return nil, "" // opening the mean reports the error
	}
	defer f.Close()
	for _, sd := range f.StateDicts() {
		if sd.Average().Mark != "" && len(f.StateDicts()) > 1 {
			marked = sd.Key
		}
		parts := sd.NetworkKeys()
		if mean := sd.MeanKey(); mean != "" {
			parts = []string{mean}
		} else if len(parts) == 0 {
			parts = []string{sd.Key}
		}
		keys = append(keys, parts...)
	}
	return keys, marked
}

// averageKey returns the key of the average among the keys of a file, or that of the checkpoints if none is found. marked is the key
// that the file itself calls an average. Lightning's WeightAveraging and the EMAHook of MMEngine keep the average under state_dict.
func averageKey(keys []string, marked, ofCheckpoints string) string {
	matching := func(part func(key string) string) (found []string) {
		for _, key := range keys {
			if programs.AverageWords.MatchString(part(key)) {
				found = append(found, key)
			}
		}
		return found
	}
	found := matching(func(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }) // ema/online_model is no average
	if len(found) == 0 {
		found = matching(func(key string) string { return key })
	}
	switch {
	case len(keys) == 1:
		return keys[0]
	case marked != "":
		return marked
	case len(found) == 1:
		return found[0]
	}
	return ofCheckpoints
}

// meanVector sets the weights of the mean. Its batch-norm statistics are not used.
func (s *FitInputs) meanVector(set *checkpoints.Set) error {
	if s.mean == nil {
		return nil
	}
	reference := set.Models[set.Reference]
	same, err := checkpoints.Match(s.mean, reference)
	if err != nil {
		return err
	}
	if s.Mean.Theta, err = same.Vector(s.Layout, weights.Parameter); err != nil {
		return err
	}
	for _, t := range s.Layout.Role(weights.Constant) {
		if same.Tensor(t.Name) == nil {
			continue // no part of a simplified model, which export writes
		}
		if err := unchanged(t, same, reference); err != nil {
			return err
		}
	}
	return nil
}

// unchanged fails if a constant of the checkpoints is another one in the mean. An average of equal numbers may differ
// from them by rounding.
func unchanged(t weights.Tensor, mean, checkpoint *onnxio.Model) error {
	const tolerance = 1e-3 // relative to the tensor's Euclidean length
	a, err := values(mean, t)
	if err != nil {
		return err
	}
	b, err := values(checkpoint, t)
	if err != nil {
		return err
	}
	var distance, size float64
	for i, v := range b {
		d := float64(a[i]) - float64(v)
		distance, size = distance+d*d, size+float64(v)*float64(v)
	}
	if distance > tolerance*tolerance*size {
		return &onnxio.Error{Path: mean.Path, Tensor: t.Name, What: "differs from that of the checkpoints, in which it never changes",
			Hint: setting.Mean.String() + " takes an average over the run of the checkpoints"}
	}
	return nil
}

func values(m *onnxio.Model, t weights.Tensor) ([]float32, error) {
	held, err := m.Lookup(t)
	if err != nil {
		return nil, err
	}
	out := make([]float32, held.Len())
	t.DType.Float32s(out, m.Stretch(held, 0, held.Len()))
	return out, nil
}
