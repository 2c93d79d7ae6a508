package open

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/programs"
	"github.com/swagwrap/swagwrap/internal/reference"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/study/diagnosis"
	"github.com/swagwrap/swagwrap/internal/target"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// FitOptions says what a fit reads.
type FitOptions struct {
	Checkpoints []string // files and folders
	AsGiven     bool     // their order is that of training
	Last        int      // the number of checkpoints to take, the last ones, or 0 for all
	Output      string   // the path of the posterior
	Extend      string   // the path of an older posterior, or ""
	Refit       bool     // another average of that posterior's checkpoints is wanted
	GivenPower  bool     // its weights rise as the user says, not as those of that posterior
	Theta0      string   // the path of the pre-trained network, or ""
	Mean        string   // the file of the mean, or KEY=FILE, or ""
	Averages    Averages // what happens to averages among the checkpoints; "" asks
	Folded      bool     // batch norm may be folded
	NoGraph     bool     // only the average of the weights is wanted: see [WeightsMean]
	Spread      string   // the flag that says how deviations are taken, or ""
	Source      SourceOptions
	Network     NetworkOptions
	Card        CardOptions
	Parity      ParityOptions
	Roles       []checkpoints.RoleRule // of tensors
}

// FitInputs are the open files of a fit.
type FitInputs struct {
	swag.Input
	*Opener
	options  FitOptions
	models   []*onnxio.Model
	mean     *onnxio.Model  // the file of the given mean, or nil
	older    int            // number of models that are checkpoints of the previous posterior
	previous *infer.Network // the posterior to extend, or nil
	source   *Source
	moments  map[string]string // of training, as the checkpoints store them, by path
	near     *programs.Run     // what lies near the checkpoints
	// reference has what the training framework computed, or is nil. proof says what its pictures prove, or is empty.
	reference *reference.File
	proof     string
}

// Close closes all files.
func (s *FitInputs) Close() {
	CloseModels(s.models)
	if s.mean != nil {
		s.mean.Close()
	}
	s.source.Close()
	if s.previous != nil {
		s.previous.Posterior.Close()
	}
}

// OpenFit opens all inputs of a fit of checkpoints. It copies the options of an older posterior. The caller
// closes the inputs.
//
// An older posterior is continued, if it holds enough for that. Otherwise its checkpoints are read again, before the others. So they are
// if only the last ones are wanted, or other weights.
func (a *Opener) OpenFit(ctx context.Context, o FitOptions, of *Ordered, opts *swag.FitOptions) (*FitInputs, error) {
	o.Source = of.Source
	s, done := &FitInputs{Opener: a, options: o, moments: of.moments, near: of.near}, false
	defer func() {
		if !done { // also after a panic, which a file that became shorter causes
			s.Close()
		}
	}()
	if err := s.open(ctx, of, opts); err != nil {
		return nil, err
	}
	set, graph, err := s.matchIterates(of.named)
	if err == nil {
		err = Takes(ctx, a, s.Computes, set.Models[len(set.Models)-1])
	}
	if err == nil {
		err = s.parity(ctx, of, set)
	}
	if err == nil {
		err = s.vectors(set, graph)
	}
	if err != nil {
		return nil, BadInput(err)
	}
	if countsTheta0(s) {
		s.Theta0, s.Checkpoints = &s.Checkpoints[0], s.Checkpoints[1:]
	}
	if err := s.refuseSpread(); err != nil {
		return nil, err
	}
	_, warnings := s.source.Remarks(s.Card.Parity.Proves())
	s.warn(warnings)
	if recipe := s.source.Template.Recipe(); recipe != nil {
		if s.Template, err = json.Marshal(recipe); err != nil {
			return nil, err
		}
	}
	done = true
	return s, nil
}

// countsTheta0 reports whether the first model is θ0.
func countsTheta0(s *FitInputs) bool {
	return s.options.Theta0 != "" || s.older > 0 && s.previous.Posterior.Theta0 != nil
}

// open opens the older posterior and all checkpoints, and checks them. It makes the model card.
func (s *FitInputs) open(ctx context.Context, of *Ordered, opts *swag.FitOptions) (err error) {
	var template *checkpoints.Template
	if older := s.options.Extend; older != "" {
		if s.previous, err = s.OpenNetwork(ctx, s.options.Network, older); err != nil {
			return err
		}
		template = s.previous.Template()
	}
	if s.source, err = s.OpenSource(s.options.Source, template); err != nil {
		return err
	}
	if s.previous != nil {
		if err := s.inherit(opts); err != nil {
			return err
		}
	}
	paths := of.Paths
	if s.options.Theta0 != "" {
		paths = append([]string{s.options.Theta0}, paths...)
	}
	if s.source.Template != nil {
		s.source.Template.Others, s.source.Template.Opened = of.Others, of.opened
	}
	models, err := s.source.Open(paths)
	if err != nil {
		return err
	}
	s.models = append(s.models, models...)
	notes, _ := s.source.Remarks(false)
	if mode := diagnosis.TrainingMode(s.models[0]); mode != "" {
		notes = append(notes, "note: "+mode)
	}
	for _, note := range notes {
		s.Logf("%s", note)
	}
	if err := s.openReference(of); err != nil {
		return err
	}
	if s.Card, err = s.card(); err != nil { // a wrong card ends the command before the weights are read
		return err
	}
	if err := s.hash(ctx); err != nil {
		return err
	}
	if err := s.checkContents(); err != nil {
		return err
	}
	if err := s.openMean(ctx); err != nil {
		return err
	}
	warnings, err := s.refuseFolded()
	s.warn(warnings)
	return err
}

// inherit takes the options of the older posterior. It opens the posterior's checkpoints, θ0 first, if they must be
// read again.
func (s *FitInputs) inherit(opts *swag.FitOptions) error {
	p := s.previous.Posterior
	o, again := p.Options, p.Continues()
	if s.options.Refit {
		again = fmt.Errorf("%s: another average is wanted", p.Path)
	}
	if !s.options.GivenPower {
		opts.Power = o.Power
	}
	opts.Roles = o.Roles
	for _, text := range o.Roles {
		rule, err := checkpoints.ParseRoleRule(text)
		if err != nil {
			return BadInput(fmt.Errorf("role %w", err))
		}
		s.options.Roles = append(s.options.Roles, rule)
	}
	if p.GivenMean != nil {
		return Usagef("fit a new posterior of all checkpoints, with "+setting.Mean.String()+" and an average of them all",
			"%s: the mean of %s was given, and cannot take in more checkpoints", setting.Extend, p.Path)
	}
	if again == nil {
		s.Previous, s.Graph, s.Warnings = p, p.Graph, slices.Clone(p.Warnings)
		return nil
	}
	s.Logf("%v: all its checkpoints are read again", again)
	opts.Rank, opts.DiagOnly, opts.Deviations, opts.Reference, opts.ReferToCheckpoints = o.Rank, o.Rank == 0, o.Deviations,
		o.Compat != "", o.Referenced
	for _, c := range p.Models() {
		m, err := s.previous.Open(c, "")
		if err != nil {
			return BadInput(err)
		}
		s.models = append(s.models, m)
	}
	s.older = len(s.models)
	return nil
}

// card makes the model card, and checks it against the graph. It fails if neither the graph nor the card has a required
// setting.
func (s *FitInputs) card() (card swag.Card, err error) {
	if s.previous != nil {
		card = s.previous.Posterior.Card
	}
	before := card
	if card, err = s.options.Card.Change(card); err != nil {
		return card, err
	}
	m := s.models[len(s.models)-1]
	if s.previous == nil {
		if card.Output, err = s.output(m, card); err != nil {
			return card, err
		}
	}
	g, err := infer.ReadGraph(m, card.Output, card)
	if err != nil {
		return card, BadInput(err)
	}
	if err := s.pixelUnits(&card, g); err != nil {
		return card, err
	}
	if s.previous == nil {
		s.near.WithGraph(m.Metadata)
		s.readNearby(&card, g)
	}
	if card.Targets != nil { // a regression
		if err := s.options.Card.checkHead(before, g.Layout().Count); err != nil {
			return card, err
		}
	}
	card.ClassAxis = g.Axis()
	if pairs := g.States(); pairs != nil {
		card.State = pairs
	}
	if card.Columns, card.Pad, err = columns(s.options.Card.Columns, card, g); err != nil {
		return card, err
	}
	known := len(card.ClassNames)
	if s.reference != nil && known == 0 {
		known = len(s.reference.ClassNames)
	}
	if card.Task == "" {
		card.Task, err = g.InferTask(known)
	}
	output := cmp.Or(card.Output, m.Graph.Outputs[0].Name)
	if u := new(task.AmbiguousTask); errors.As(err, &u) {
		hints := u.Hints()
		if u.Activation != "" {
			hints = append(hints, diagnosis.OtherOutputs(m, output)...)
		}
		return card, Usagef(strings.Join(hints, "\n"), "%s: %w", m.Path, err)
	}
	if err != nil {
		return card, BadInput(fmt.Errorf("%s: %w", m.Path, err), diagnosis.OtherOutputs(m, output)...)
	}
	if f := g.Proven(); f != "" && task.TraitsOf(card.Task).Form {
		card.Scores = string(f)
	}
	if err := g.CheckNames(card.ClassNames); err != nil {
		return card, BadInput(fmt.Errorf("%s: %w", m.Path, err))
	}
	s.findNames(&card, g)
	if s.reference != nil {
		if err := (&heldCard{s, &card, m, g}).hold(); err != nil {
			return card, err
		}
	}
	if err := s.nearbyPreprocessing(&card, g); err != nil {
		return card, err
	}
	if info, err := os.Stat(s.options.Card.ClassNames); err == nil && info.IsDir() {
		if doubt := names.Ordered(card.ClassNames); doubt != "" {
			s.warn([]string{doubt + names.InOrder()})
		}
	}
	return card, nil
}

// pixelUnits says on the model card in which units the mean and the standard deviation of pixels are. Networks of one channel
// may take other values than pixels. With several, nothing else has a mean for each channel.
func (s *FitInputs) pixelUnits(card *swag.Card, g *infer.Graph) error {
	p, err := preprocess.Decode(card.Preprocess)
	if err != nil || !g.TakesPictures() {
		return BadInput(err)
	}
	p, note, err := p.InUnits()
	if errors.As(err, new(*preprocess.UnitsError)) && g.Colours() {
		return Usagef("", "%s: %w", setting.Preprocess, err)
	}
	if p.Reversed() {
		s.Warnf("the mean %v is that of ImageNet as blue, green, red. Here it is red, green, blue, also with channels=bgr: turn mean "+
			"and std around", p.Mean)
	}
	if note != "" {
		s.Logf("%s", note)
		card.Preprocess, err = json.Marshal(p)
		return err
	}
	return nil
}

// readNearby gives the model card what files near the checkpoints, or the exported graph, say: names of classes, and the pad token.
func (s *FitInputs) readNearby(card *swag.Card, g *infer.Graph) {
	names, from := classesNear(s.near)
	if card.ClassNames == nil && card.Targets == nil && names != nil && g.Layout().Count == len(names) {
		card.ClassNames = names
		s.Logf("names of classes: %s", from)
	}
	readPad(s, card, g)
}

// nearbyPreprocessing gives the model card the preprocessing of pictures that lies near the checkpoints, if nothing else says it.
func (s *FitInputs) nearbyPreprocessing(card *swag.Card, g *infer.Graph) error {
	if s.previous != nil || card.Preprocess != nil || s.options.Card.Preprocess != "" || s.proof != "" || !g.TakesPictures() ||
		g.Input.ElemType == onnxio.Uint8 {
		return nil
	}
	p := s.near.Preprocess()
	if p == nil {
		if u := s.near.Unsaid(); u != nil {
			s.Logf("preprocessing: %v. %s", u, strings.Join(u.Hints(), ", "))
		}
		return nil
	}
	if _, err := p.Resolve(g.Input.Shape[1:]); err != nil && !errors.Is(err, preprocess.ErrNoSize) {
		s.Logf("preprocessing: that of %s is not the network's: %v", p.From, err)
		return nil
	}
	var err error
	if card.Preprocess, err = json.Marshal(p.Settings); err != nil {
		return err
	}
	s.Logf("preprocessing: %q, of %s. Pictures and arrays of uint8 are prepared so, and arrays of floats reach the network unchanged (%s "+
		"takes another)", p.Words(), p.From, setting.Preprocess)
	return s.pixelUnits(card, g)
}

// classesNear returns the names of classes that files near checkpoints say, and where.
func classesNear(near *programs.Run) (names []string, from string) {
	if path := near.Find("config.json"); path != "" {
		if names = listing.ClassNamesOf(path); names != nil {
			return names, path
		}
	}
	return near.Classes()
}

// findNames gives the model card the names that other files have: of classes in a configuration with the preprocessing, and
// of columns in a table with the targets of training.
func (s *FitInputs) findNames(card *swag.Card, g *infer.Graph) {
	if path := s.options.Card.Preprocess; card.ClassNames == nil && path != "" {
		if names := listing.ClassNamesOf(path); names != nil && g.CheckNames(names) == nil {
			card.ClassNames = names
			s.Logf("names of classes: %s", path)
		}
	}
	if path := s.options.Card.Targets.File; card.Columns == nil && path != "" {
		opts := dataset.Options{Fields: g.Fields(), Target: target.Numbers}
		if columns := dataset.ColumnsOf(path, opts); columns != nil {
			card.Columns = columns
			s.Logf("names of columns: %s", path)
		}
	}
}

// output returns the name of the output with the scores for the model card, or "" for the first.
func (s *FitInputs) output(m *onnxio.Model, card swag.Card) (string, error) {
	chosen, err := infer.ChooseOutput(m, card)
	if several := (*infer.SeveralOutputs)(nil); errors.As(err, &several) {
		return "", Usagef(strings.Join(several.Hints(), "\n"), "%w", err)
	}
	if err != nil {
		return "", BadInput(err)
	}
	if chosen.Why != "" {
		s.Logf("the network has %d outputs: the scores are those of %q, chosen %s (%s)", len(m.Graph.Outputs), chosen.Output, chosen.Why,
			setting.OutputName)
	}
	if card.Output == "" && chosen.Output == m.Graph.Outputs[0].Name {
		return "", nil
	}
	return chosen.Output, nil
}

// hash computes the SHA-256 of every checkpoint, and lists the checkpoints.
func (s *FitInputs) hash(ctx context.Context) error {
	size := int64(0)
	for _, m := range s.models {
		size += m.Size()
	}
	bar := s.ProgressBytes(ctx, "reading", size)
	defer bar.Done()
	sums, err := checkpoints.Sums(ctx, s.models, bar.Add)
	if err != nil {
		return err
	}
	for i, m := range s.models {
		ck := swag.Checkpoint{Path: file.RelativeTo(s.options.Output, m.Path), Given: m.Path, SHA256: sums[i], StateDict: s.source.key(m)}
		if i < s.older {
			ck.StateDict = s.previous.Posterior.Models()[i].StateDict
		}
		s.Checkpoints = append(s.Checkpoints, ck)
	}
	return nil
}

// refuseSpread refuses options for deviations if there is one checkpoint, which has none.
func (s *FitInputs) refuseSpread() error {
	switch {
	case s.Previous != nil || len(s.Checkpoints) > 1:
		return nil
	case s.Mean != nil:
		return Usagef("give at least 2 checkpoints of the same run, or fit the average alone: "+
			setting.Line(setting.Fit.With(setting.Task.With("TASK"), s.Mean.Given)),
			"%s and 1 checkpoint: one does not show how far the weights spread", setting.Mean)
	case s.Theta0 != nil:
		return Usagef("leave out "+setting.Theta0.String()+", or give at least 2 checkpoints",
			"%s and 1 checkpoint: both are models of the mean, but only checkpoints have deviations", setting.Theta0)
	}
	if s.options.Spread != "" {
		return Usagef("leave it out, or give at least 2 checkpoints", "%s: one checkpoint has no deviations", s.options.Spread)
	}
	return nil
}

// vectors sets the weights and statistics of the models. graph, if not nil, is the graph of the network.
func (s *FitInputs) vectors(set *checkpoints.Set, graph *onnxio.Model) (err error) {
	if set.ByPlace && !s.Card.Parity.Proves() {
		s.Logf("tensors have other names in other files, and were matched by their place in the graph")
	}
	in, err := set.Input(s.Checkpoints)
	if err != nil {
		return err
	}
	s.Layout, s.Release = in.Layout, in.Release
	if in.Graph != nil {
		s.Graph = in.Graph
	}
	if err := s.meanVector(set); err != nil {
		return err
	}
	warnings, err := unreadSegments(s.Input, s.models[len(s.models)-1])
	if err != nil {
		return err
	}
	s.warn(warnings)
	var statistics [][]float32
	for _, c := range s.Checkpoints {
		row := make([]float32, c.Statistics.Len())
		if err := c.Statistics.ReadAt(row, 0); err != nil {
			return err
		}
		if r, ok := c.Statistics.(interface{ Release() }); ok {
			r.Release() // they are all over the file, and the system maps many pages around each
		}
		statistics = append(statistics, row)
	}
	s.buffers(graph, statistics)
	s.notIterates(statistics)
	if n := len(s.models); n > 1 {
		s.Card.Updates = updatesOf(s.Layout, s.source.counts(s.models[n-2]).Layers, s.source.counts(s.models[n-1]).Layers)
	}
	return nil
}

// updatesOf returns what [swag.Card].Updates are for a layout, from the counters of the last two checkpoints by their own names.
func updatesOf(l *weights.Layout, before, last map[string]int64) map[string]int64 {
	updates, numbers := map[string]int64{}, map[int64]bool{}
	for _, t := range l.Role(weights.Statistic) {
		name := counterOf(t.Name, last)
		earlier, ok := before[name]
		if n := last[name] - earlier; ok && n > 0 { // a frozen layer has none
			updates[t.Name], numbers[n] = n, true
		}
	}
	if len(numbers) < 2 {
		return nil
	}
	return updates
}

// counterOf returns the name in the checkpoints of a running mean, or "". The graph, or the checkpoints, may have more modules around it.
func counterOf(mean string, counters map[string]int64) (name string) {
	if _, ok := counters[mean]; ok {
		return mean
	}
	around := ""
	for o := range counters {
		if strings.HasSuffix(mean, "."+o) && len(o) > len(name) {
			name = o
		}
		if strings.HasSuffix(o, "."+mean) && (around == "" || len(o) < len(around)) {
			around = o
		}
	}
	return cmp.Or(name, around)
}

// buffers reports which tensors are kept out of the average. It warns of those that will not match the averaged
// weights. One checkpoint has no average.
func (s *FitInputs) buffers(graph *onnxio.Model, statistics [][]float32) {
	if s.Previous == nil && len(s.models) == 1 {
		return
	}
	if s.Previous != nil {
		statistics, graph = slices.Concat(s.Previous.StoredStatistics, statistics), s.previous.Skeleton() // it has the names of the layout
	}
	notes, warnings := diagnosis.Buffers(graph, s.Layout, statistics)
	for _, note := range notes {
		s.Logf("%s", note)
	}
	s.warn(warnings)
}

// warn adds warnings that stay with the posterior.
func (s *FitInputs) warn(warnings []string) {
	for _, w := range warnings {
		if !slices.Contains(s.Warnings, w) {
			s.Warnings = append(s.Warnings, w)
		}
	}
}

// refuseFolded refuses checkpoints with batch norm folded in, except for one checkpoint, since nothing is recomputed for
// it. If the options allow it, refuseFolded returns a warning that stays with the posterior.
func (s *FitInputs) refuseFolded() (warnings []string, err error) {
	if len(s.models) == 1 && s.options.Extend == "" {
		return nil, nil
	}
	path, folding := diagnosis.Folded(s.models)
	if folding == nil {
		path, folding = foldedBefore(s)
	}
	switch {
	case folding == nil:
		return nil, nil
	case s.options.Folded:
		return []string{fmt.Sprintf("%s: %v; members predict worse than they could", path, folding)}, nil
	}
	return nil, BadInput(fmt.Errorf("%s: %v", path, folding),
		append(diagnosis.FoldingHints(folding), setting.Allow.With("folded")+" continues anyway")...)
}

// foldedBefore finds batch norm that was folded before the export of all checkpoints. Nothing in them shows it, but a PyTorch file near
// them that still has the statistics does. Where there is none, foldedBefore says what an average of such files would be.
func foldedBefore(s *FitInputs) (path string, sign *onnxio.Folding) {
	m := s.models[len(s.models)-1]
	conv := onnxio.Unnormalised(m)
	if conv == nil || s.source.Template != nil {
		return "", nil
	}
	for _, dir := range around([]string{m.Path}) {
		folder, err := programs.ListFlat(dir, nil)
		if err != nil {
			continue
		}
		for _, path := range folder.States {
			if f, err := folder.Open(path); err == nil && f.Normalises(conv.Name, conv.Shape) {
				sign = &onnxio.Folding{From: path, Tensor: conv.Name, Keep: onnxio.KeepTorchScript}
				break
			}
		}
		folder.Close()
		if sign != nil {
			return m.Path, sign
		}
	}
	s.Logf("%s: no layer normalises, and every convolution has a bias. If training had batch norm, the export folded it into the weights, "+
		"and their average is wrong: export the checkpoints again with batch norm kept: %s", m.Path, onnxio.KeepPyTorch)
	return "", nil
}
