// Package ensemble stores the recipe for S members in a file, and scores data with these members.
//
// An [Ensemble] is the content of the file: the paths of the posteriors, the seed, the batch-norm statistics of each
// member, and the model card. It holds no weights. The weights are drawn again from the posteriors, which are separate
// files. The members come from one posterior or, in a mixture ([Ensemble.Mix]), from several. docs/formats.md specifies the
// file.
//
// A [Scorer] runs an ensemble over any number of examples. It makes the rows that package predictions writes.
//
// # Invariants
//
// The probabilities of the members are averaged (Bayesian model averaging, section 3.5 of Maddox et al. 2019). With
// several posteriors the average is Σ w·p with Σ w = 1. The mutual information of the members, which measures their
// disagreement, is then H(Σ w·p) − Σ w·H(p). The file and its posteriors always give the same members, bit for bit:
// [Ensemble.OpenPosterior] refuses a posterior whose content has changed. Equal [Scorer.Parameters] give equal rows.
//
// # Concurrency
//
// [Ensemble.SetNoise] and [Ensemble.AddCheckpoints] change the ensemble. Its other methods do not, and
// several goroutines may call them. A [Scorer] uses as many goroutines as its engine has workers. Only one goroutine at
// a time may call its methods.
package ensemble

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"github.com/swagwrap/swagwrap/calibrate/expect"
	"github.com/swagwrap/swagwrap/calibrate/shares"
	"github.com/swagwrap/swagwrap/internal/guarantee"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/internal/moments"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/task"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
)

// Kind and versions of an ensemble file; see docs/formats.md. Only an adapted ensemble needs the second: a reader of the first would
// not know that its statistics are not those of training. Orthogonal draws, and weights of a stopping rule, need the third: a reader
// of the second would make other members or averages.
const (
	Kind           = "swagwrap.ensemble"
	Version        = 1
	adaptedVersion = 2
	weighedVersion = 3
)

// MaxPosteriors is the largest number of posteriors of an ensemble.
//
// maxValues is the largest number of values in one JSON text of its metadata.
//
// maxComponents is the limit for "components", whose values take more memory. A checkpoint that is a member takes three
// values.
const (
	MaxPosteriors = 1000
	maxValues     = 1 << 17
	maxComponents = 1 << 15
)

// statisticsSection returns the name of the section of component i.
func statisticsSection(i int) string { return fmt.Sprintf("statistics.%d", i) }

// Ensemble is everything that rebuilds S members except the posteriors, which are separate files. The members of the
// first component come first.
type Ensemble struct {
	Path       string
	ID         string // identifies the file's content; set by Open
	Components []Component
	Sampling   Draw
	Card       swag.Card // the posteriors' card, with noise that was fitted later
	// Calibration calibrates the members' average. It is nil for none.
	Calibration *task.Calibration
	// Threshold is a threshold on the calibrated probability of class 1, for the task binary. 0 stands for the usual
	// one.
	Threshold float64
	// Validation is what predictions of validation data looked like. It is nil if no command has seen any.
	Validation *moments.Predicted
	// Expected is what the accuracy, or error, on data without labels is estimated from. It is nil if no command has
	// seen labelled predictions.
	Expected *expect.Validation
	// Guarantee is what is guaranteed of predictions. It is nil if nothing is.
	Guarantee *guarantee.Guarantee
	// FittedOn says which data chose the calibration, or noise. It is nil if none did, or if an older version wrote the file.
	FittedOn *guarantee.Data
	// Stopping says when an example needs no more members. It is nil without such a rule.
	Stopping *Stopping
	// Labelled has calibrated probabilities of labelled examples, which say what shares of the classes the probabilities assume. It is nil
	// if no command has seen any.
	Labelled *shares.Labelled
}

// Component is the part of an ensemble that comes from one posterior.
type Component struct {
	Posterior Reference         `json:"posterior"`
	Members   int               `json:"members"`
	Weight    float64           `json:"weight"`     // weight of all its members together; the components' weights add up to 1
	BatchNorm *batchnorm.Record `json:"batch_norm"` // nil for a network without batch norm, and for checkpoints
	// Scores gives the meaning of the networks' scores if it was set after the posterior was made. If it is empty, the
	// posterior's model card has it.
	Scores string `json:"scores,omitempty"`
	// Probe holds the findings of the checks of the training data (sample --bn-data). It is nil without them.
	Probe *probe.Report `json:"intake,omitempty"`
	// Checkpoints are set if the members are checkpoints. Each has the path at the time of writing, and identifies its
	// content.
	Checkpoints []swag.Checkpoint `json:"checkpoints,omitempty"`
	// Statistics holds the batch-norm statistics of each member. They are recomputed, or read from the checkpoint if
	// the member is one. The lists are empty for a network without batch norm.
	Statistics [][]float32 `json:"-"`
	// Adapted says to which data the statistics were adapted. It is nil if they were not.
	Adapted *Adapted `json:"adapted,omitempty"`
	// Source holds the statistics before they were adapted, or nil.
	Source [][]float32 `json:"-"`
}

// Reference names a posterior file and its content.
type Reference struct {
	Path string `json:"path"` // relative to the folder of the ensemble file, or absolute
	ID   string `json:"id"`
}

// Preprocess returns the settings that turn images into inputs.
func (e *Ensemble) Preprocess() (preprocess.Settings, error) {
	s, err := preprocess.Decode(e.Card.Preprocess)
	if err != nil {
		return s, fmt.Errorf("%s: model card: %w", e.Path, err)
	}
	return s, nil
}

// Name gives the model card the names that it lacks: of classes, and of the columns of the inputs.
func (e *Ensemble) Name(known names.Known) {
	if e.Card.ClassNames == nil {
		e.Card.ClassNames = known.Classes
	}
	if len(known.Columns) > 0 {
		e.Card.Columns = maps.Clone(known.Columns)
	}
}

// Checked returns what the checks of the training data found for each component, nil for those without.
func (e *Ensemble) Checked() (reports []*probe.Report) {
	for _, c := range e.Components {
		reports = append(reports, c.Probe)
	}
	return reports
}

// Members returns S, the number of members.
func (e *Ensemble) Members() int { return e.first(len(e.Components)) }

// first returns the number of the first member of component i.
func (e *Ensemble) first(i int) int {
	n := 0
	for _, c := range e.Components[:i] {
		n += c.Members
	}
	return n
}

// weight returns the weight of each member of component i in the average, as a multiple of 1/S.
func (e *Ensemble) weight(i int) float64 {
	c := e.Components[i]
	return c.Weight * float64(e.Members()) / float64(c.Members)
}

// Weights returns the weight of each member in the average. The weights add up to 1.
func (e *Ensemble) Weights() (weights []float64) {
	for k := range e.Members() {
		i, _ := e.Find(k)
		weights = append(weights, e.weight(i))
	}
	floats.Scale(1/floats.Sum(weights), weights)
	return weights
}

// Find returns the component of member k in [0, S), and the index of the member in this component.
func (e *Ensemble) Find(k int) (component, place int) {
	for k >= e.Components[component].Members {
		k -= e.Components[component].Members
		component++
	}
	return component, k
}

// metadata returns what the file says of the ensemble.
func (e *Ensemble) metadata() map[string]any {
	record := map[string]any{
		"components":  e.Components,
		"sampling":    e.Sampling,
		"card":        e.Card,
		"calibration": e.Calibration,
	}
	if e.Threshold > 0 {
		record["threshold"] = e.Threshold
	}
	if e.Stopping != nil {
		record["stopping"] = e.Stopping
	}
	if !e.Guarantee.Empty() {
		record["guarantee"] = e.Guarantee
	}
	if e.FittedOn != nil {
		record["fitted_on"] = e.FittedOn
	}
	if e.Validation != nil {
		record["validation"] = e.Validation
	}
	if e.Expected != nil {
		record["expected"] = e.Expected
	}
	return record
}

// Write writes the ensemble file.
func (e *Ensemble) Write(w io.WriterAt, producer string) error {
	version := Version
	switch {
	case e.Sampling.Orthogonal || e.Stopping != nil && e.Stopping.Weights != nil:
		version = weighedVersion
	case e.Adapted():
		version = adaptedVersion
	}
	meta, err := weights.NewMetadata(Kind, version, producer, e.metadata())
	if err != nil {
		return err
	}
	var sections []weights.Section
	var contents [][][]float32
	add := func(name string, rows [][]float32) {
		sections = append(sections, weights.Section{Name: name, DType: weights.F32, Shape: []int64{int64(len(rows)), int64(len(rows[0]))}})
		contents = append(contents, rows)
	}
	for i, c := range e.Components {
		add(statisticsSection(i), c.Statistics)
	}
	for i, c := range e.Components {
		if c.Adapted != nil {
			add(sourceSection(i), c.Source)
		}
	}
	if e.Labelled != nil {
		add(labelledSection, labelledRows(e.Labelled))
	}
	sw, err := weights.NewSafetensorsWriter(w, sections, meta)
	if err != nil {
		return err
	}
	for i, rows := range contents {
		for _, s := range rows {
			b := make([]byte, 4*len(s))
			weights.F32.PutFloat32s(b, s)
			if _, err := sw.Section(i).Write(b); err != nil {
				return err
			}
		}
	}
	return sw.Close()
}

// Open reads the whole ensemble file at path, and checks its checksums.
func Open(path string) (*Ensemble, error) {
	st, err := weights.OpenSafetensors(path)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	return Read(st)
}

// Read is [Open] for a file that is open already. It does not close it.
func Read(st *weights.Safetensors) (*Ensemble, error) {
	path := st.Path
	if err := st.CheckKind(Kind, weighedVersion); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := fewMetadata(st); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := st.Verify(); err != nil {
		return nil, err
	}
	e := &Ensemble{Path: path, ID: st.ID()}
	err := e.readMetadata(st)
	if err == nil {
		err = e.readStatistics(st)
	}
	if err == nil {
		e.Labelled, err = readLabelled(st)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// fewMetadata refuses metadata that would take too much memory.
func fewMetadata(st *weights.Safetensors) error {
	if err := st.FewMetadata(maxValues); err != nil {
		return err
	}
	if n := strings.Count(st.Metadata["components"], ","); n > maxComponents {
		return fmt.Errorf("metadata \"components\": %d values, want at most %d", n, maxComponents)
	}
	return nil
}

// readMetadata is the inverse of metadata. Call fewMetadata before it if the file may come from anywhere.
func (e *Ensemble) readMetadata(st *weights.Safetensors) error {
	values := map[string]any{
		"components":  &e.Components,
		"sampling":    &e.Sampling,
		"card":        &e.Card,
		"calibration": &e.Calibration,
	}
	for key, to := range map[string]any{
		"threshold":  &e.Threshold,
		"stopping":   &e.Stopping,
		"validation": &e.Validation,
		"expected":   &e.Expected,
		"guarantee":  &e.Guarantee,
		"fitted_on":  &e.FittedOn,
	} {
		if _, ok := st.Metadata[key]; ok {
			values[key] = to
		}
	}
	if err := st.DecodeMetadata(values); err != nil {
		return err
	}
	if e.Calibration != nil {
		if err := e.Calibration.Sound(); err != nil {
			return fmt.Errorf("metadata \"calibration\": %w", err)
		}
	}
	if !(e.Threshold >= 0 && e.Threshold <= 1) {
		return fmt.Errorf("metadata \"threshold\": %v, want a number above 0 and at most 1", e.Threshold)
	}
	if err := e.check(); err != nil {
		return fmt.Errorf("metadata \"components\": %w", err)
	}
	if e.Validation != nil {
		if err := e.Validation.Sound(); err != nil {
			return fmt.Errorf("metadata \"validation\": %w", err)
		}
	}
	if v := e.Expected; v != nil && v.All == nil && v.Parts == nil { // of a program before the first release
		e.Expected = nil
	}
	if e.Expected != nil {
		if err := e.Expected.Sound(); err != nil {
			return fmt.Errorf("metadata \"expected\": %w", err)
		}
	}
	if _, ok := values["guarantee"]; ok {
		if err := e.Guarantee.Sound(); err != nil {
			return fmt.Errorf("metadata \"guarantee\": %w", err)
		}
	}
	if e.Stopping != nil {
		if err := e.Stopping.check(e.Members(), e.Unit()); err != nil {
			return fmt.Errorf("metadata \"stopping\": %w", err)
		}
	}
	return nil
}

func (e *Ensemble) readStatistics(st *weights.Safetensors) (err error) {
	for i := range e.Components {
		c := &e.Components[i]
		if c.Statistics, err = readRows(st, statisticsSection(i), c.Members); err != nil {
			return err
		}
		if c.Adapted == nil {
			continue
		}
		if c.Source, err = readRows(st, sourceSection(i), c.Members); err != nil {
			return err
		}
		if len(c.Source[0]) != len(c.Statistics[0]) {
			return fmt.Errorf("section %q: %d statistics of a member, want %d", sourceSection(i), len(c.Source[0]), len(c.Statistics[0]))
		}
	}
	return nil
}

// readRows reads a section with a row of statistics for each member.
func readRows(st *weights.Safetensors, section string, members int) (rows [][]float32, err error) {
	v, ok := st.View(section)
	if !ok || v.DType != weights.F32 || len(v.Shape) != 2 || v.Shape[0] != int64(members) {
		return nil, fmt.Errorf("section %q: want F32 with a row for each of %d members", section, members)
	}
	rows = make([][]float32, 0, members)
	for k := range v.Shape[0] {
		row := make([]float32, v.Shape[1])
		v.Float32s(row, k*v.Shape[1])
		rows = append(rows, row)
	}
	if at := weights.Number.FirstImpossible(v.DType, v.Data); at >= 0 { // [Ensemble.SoundStatistics] checks more, with the graph
		return nil, fmt.Errorf("section %q: member %d: value %v at index %d, want finite batch-norm statistics", section, at/v.Shape[1],
			rows[at/v.Shape[1]][at%v.Shape[1]], at%v.Shape[1])
	}
	return rows, nil
}

// check refuses components that are invalid.
func (e *Ensemble) check() error {
	if n := len(e.Components); n > MaxPosteriors {
		return fmt.Errorf("%d posteriors, want at most %d", n, MaxPosteriors)
	}
	if e.Sampling.Orthogonal && !e.Sampling.Antithetic {
		return errors.New("orthogonal draws that are not antithetic")
	}
	total, members := 0.0, 0
	for i, c := range e.Components {
		switch {
		case c.Members < 1 || c.Members >= swag.MaxMembers:
			return fmt.Errorf("%d members of %s, want 1 to %d", c.Members, c.Posterior.Path, swag.MaxMembers-1)
		case e.Sampling.Antithetic && c.Members%2 != 0 && i < len(e.Components)-1:
			return fmt.Errorf("%d antithetic members of %s, want pairs", c.Members, c.Posterior.Path)
		case e.Sampling.Covariance == Iterates && len(c.Checkpoints) != c.Members:
			return fmt.Errorf("%d checkpoints of %s, want %d", len(c.Checkpoints), c.Posterior.Path, c.Members)
		case c.Adapted != nil && !(c.Adapted.Weight > 0 && c.Adapted.Weight <= 1):
			return fmt.Errorf("weight %v of the target of %s, want a number above 0 and at most 1", c.Adapted.Weight, c.Posterior.Path)
		case !(c.Weight > 0):
			return fmt.Errorf("weight %v of %s, want a positive number", c.Weight, c.Posterior.Path)
		}
		total += c.Weight
		if members += c.Members; members >= swag.MaxMembers {
			return fmt.Errorf("%d members, want at most %d", members, swag.MaxMembers-1)
		}
	}
	if !(math.Abs(total-1) <= 1e-9) { // the rounding of shares changes their sum by less
		return fmt.Errorf("weights of %d posteriors add up to %v, want 1", len(e.Components), total)
	}
	return nil
}

// SoundStatistics fails if the batch-norm statistics of a member are impossible for the network of component i.
func (e *Ensemble) SoundStatistics(i int, n *infer.Network) error {
	if err := n.SoundStatistics(e.Components[i].Statistics); err != nil {
		return fmt.Errorf("%s: section %q: %w", e.Path, statisticsSection(i), err)
	}
	if err := n.SoundStatistics(e.Components[i].Source); err != nil {
		return fmt.Errorf("%s: section %q: %w", e.Path, sourceSection(i), err)
	}
	return nil
}

// PosteriorPath returns the path of the posterior of component i at the time when the ensemble was written.
func (e *Ensemble) PosteriorPath(i int) string {
	return e.beside(e.Components[i].Posterior.Path)
}

// beside resolves a path that the ensemble file holds.
func (e *Ensemble) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(e.Path), path)
}

// OpenPosterior opens the posterior of component i. It takes the file in moved that has the right content, in any
// order, or else the file that the ensemble names. The posterior gets the noise of the ensemble's model card if its own
// card has none. OpenPosterior fails if the content has changed, or if a moved file belongs to no component.
func (e *Ensemble) OpenPosterior(i int, moved []string) (*swag.Posterior, error) {
	c, path := e.Components[i], e.PosteriorPath(i)
	for _, candidate := range moved {
		id, err := posteriorID(candidate)
		if err != nil {
			return nil, err
		}
		switch {
		case id == c.Posterior.ID:
			path = candidate
		case !slices.ContainsFunc(e.Components, func(o Component) bool { return o.Posterior.ID == id }):
			return nil, e.strange(candidate, id, e.Components)
		}
	}
	p, err := swag.Open(path)
	if err != nil {
		return nil, err
	}
	if p.ID != c.Posterior.ID {
		p.Close()
		return nil, e.strange(path, p.ID, e.Components[i:i+1])
	}
	if n := p.Layout.Len(weights.Statistic); int64(len(c.Statistics[0])) != n {
		p.Close()
		return nil, fmt.Errorf("%s: %d batch-norm statistics for each member of %s, want %d", e.Path, len(c.Statistics[0]), path, n)
	}
	e.addNoise(p)
	p.Card.Scores = cmp.Or(p.Card.Scores, c.Scores)
	return p, nil
}

func posteriorID(path string) (string, error) {
	p, err := swag.Open(path)
	if err != nil {
		return "", err
	}
	return p.ID, p.Close()
}

func (e *Ensemble) strange(path, id string, want []Component) error {
	var sums []string
	for _, c := range want {
		sums = append(sums, fmt.Sprintf("%s (%s)", c.Posterior.ID, c.Posterior.Path))
	}
	return fmt.Errorf("%s: its id is %s, but %s was drawn from %s", path, id, e.Path, strings.Join(sums, ", "))
}

// labelledSection has a row for each labelled example: its class, and its calibrated probabilities.
const labelledSection = "labelled"

func labelledRows(l *shares.Labelled) (rows [][]float32) {
	for i, label := range l.Labels {
		rows = append(rows, append([]float32{float32(label)}, l.Probs[i*l.Classes:][:l.Classes]...))
	}
	return rows
}

// readLabelled is the inverse of labelledRows. It returns nil for a file without them.
func readLabelled(st *weights.Safetensors) (*shares.Labelled, error) {
	v, ok := st.View(labelledSection)
	if !ok {
		return nil, nil
	}
	if v.DType != weights.F32 || len(v.Shape) != 2 || v.Shape[1] < 3 {
		return nil, fmt.Errorf("section %q: want F32 with a class and probabilities in each row", labelledSection)
	}
	l, row := &shares.Labelled{Classes: int(v.Shape[1] - 1)}, make([]float32, v.Shape[1])
	for i := range v.Shape[0] {
		v.Float32s(row, i*v.Shape[1])
		if row[0] < 0 || row[0] != float32(int(row[0])) {
			return nil, fmt.Errorf("section %q: row %d has the class %v", labelledSection, i, row[0])
		}
		l.Labels, l.Probs = append(l.Labels, int(row[0])), append(l.Probs, row[1:]...)
	}
	if err := l.Sound(); err != nil {
		return nil, fmt.Errorf("section %q: %w", labelledSection, err)
	}
	return l, nil
}
