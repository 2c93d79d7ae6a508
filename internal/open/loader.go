package open

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/programs"
	"github.com/swagwrap/swagwrap/internal/reference"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// openReference opens the file with reference outputs, unless it is of other networks.
func (s *FitInputs) openReference(of *Ordered) error {
	path := s.referencePath(of)
	if path == "" || s.options.Parity.Off {
		return nil
	}
	f, err := reference.Open(path)
	if err != nil {
		return BadInput(err, setting.Parity.With("off")+" goes on without it")
	}
	belongs := slices.ContainsFunc(append(slices.Clone(s.models), s.source.graph), func(m *onnxio.Model) bool {
		if m == nil {
			return false
		}
		_, ok := f.Row(m.Path)
		return ok
	})
	if s.options.Parity.File == "" && f.Weights != nil && !belongs { // it lies there for other networks
		s.Logf("parity not checked: the outputs in %s are of %s (%s takes them all the same)", path, f.Weights[len(f.Weights)-1],
			setting.Reference)
		return nil
	}
	s.reference = f
	return nil
}

// heldCard is a model card that is held against the raw examples in the reference file. It takes what they prove.
type heldCard struct {
	*FitInputs
	card  *swag.Card
	model *onnxio.Model
	graph *infer.Graph
}

func (h *heldCard) hold() error {
	for _, hold := range []func() error{h.names, h.columns, h.loader} {
		if err := hold(); err != nil {
			return err
		}
	}
	return nil
}

// loader is what raw examples, and the tensors that a training program made of them, prove about its preprocessing.
type loader struct {
	*preprocess.Pairs
	fits    []preprocess.Fit
	nearest preprocess.Fit
}

// proved reports whether reference outputs in the folders have pictures that prove the preprocessing. Then [Opener.OpenFit] takes it.
func proved(folders []string, m *onnxio.Model, g *infer.Graph) bool {
	f, err := reference.Open(programs.First(folders, reference.Name))
	if err != nil {
		return false
	}
	l, err := readLoader(f, m, g)
	return err == nil && l != nil && len(l.fits) > 0
}

// readLoader returns nil if the file has no pictures with tensors for the network.
func readLoader(f *reference.File, m *onnxio.Model, g *infer.Graph) (*loader, error) {
	for i, picture := range dataset.Pictures(g.Fields(), preprocess.Settings{}) {
		if !picture {
			continue
		}
		pairs, err := f.Pairs(m, g.Inputs[i].Name)
		if pairs == nil || err != nil {
			return nil, err
		}
		l := &loader{Pairs: pairs}
		if l.fits, l.nearest, err = pairs.Search(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		return l, nil
	}
	return nil, nil
}

// loader holds the preprocessing against the pictures of the reference file. Without proof all goes on as it was.
func (h *heldCard) loader() error {
	l, err := readLoader(h.reference, h.model, h.graph)
	if err != nil {
		h.Logf("preprocessing not checked: %v", err)
	}
	if l == nil {
		return nil
	}
	path, bytes := h.reference.Path, h.graph.Inputs[0].ElemType == onnxio.Uint8
	given, err := preprocess.Decode(h.card.Preprocess)
	if err != nil {
		return BadInput(err)
	}
	if len(l.fits) == 0 {
		if f, err := l.Compare(given); err == nil && (f.Levels < l.nearest.Levels) {
			l.nearest = f
		}
		h.Logf("%s: no preprocessing that swagwrap knows makes its tensors from its pictures. The nearest is %q, with differences up to "+
			"%.3g of 255 levels. Random augmentation is one reason", path, l.nearest.Words(), l.nearest.Levels)
		return nil
	}
	found, another := preprocess.Agreed(l.fits)
	if bytes && given.Scale == 0 { // the network takes pixels, and nothing is normalised
		given.Scale, given.Mean, given.Std = 1, nil, nil
	}
	if h.card.Preprocess == nil && h.options.Card.Preprocess == "" {
		h.tell(l, found, another)
	} else if found, err = l.confirm(given, found, h.options.Card.Preprocess); err != nil {
		return BadInput(fmt.Errorf("%s: %w", path, err), setting.Preprocess.With(fmt.Sprintf("%q", l.fits[0].Words()))+
			" is what the pictures prove. Without other words fit takes it", setting.Parity.With("off")+" goes on without this comparison")
	} else {
		h.Logf("preprocessing: as given, it makes the tensors of %s in %s from its pictures", report.Plural(len(l.Files), "example"), path)
	}
	if bytes { // nothing is normalised
		found.Scale, found.Mean, found.Std = 0, nil, nil
	}
	h.proof = report.Plural(len(l.Files), "picture") + ", " + exactly(l.fits)
	if found.Words() != preprocess.None || h.card.Preprocess != nil {
		h.card.Preprocess, err = json.Marshal(found)
	}
	return err
}

// exactly says how equal tensors are.
func exactly(fits []preprocess.Fit) string {
	if slices.ContainsFunc(fits, func(f preprocess.Fit) bool { return !f.Bits }) {
		return fmt.Sprintf("up to rounding (%.1g of 255 levels)", fits[0].Levels)
	}
	return "bit for bit"
}

// tell prints what pictures prove.
func (h *heldCard) tell(l *loader, found preprocess.Settings, another *preprocess.Fit) {
	h.Logf("preprocessing: %q makes the tensors of %s in %s from its pictures, %s", found.Words(), report.Plural(len(l.Files), "example"),
		h.reference.Path, exactly(l.fits))
	resized := !slices.ContainsFunc(l.fits, func(f preprocess.Fit) bool { return f.Image.CropMode == preprocess.CropNone })
	switch {
	case another == nil:
	case resized:
		h.Logf("two settings give the same tensors: %q and %q. What both have is taken. If pictures differ in size or shape from those: %s",
			l.fits[0].Words(), another.Words(), setting.Preprocess)
	case found.Channels == "":
		h.Logf("two settings give the same tensors, with channels rgb and bgr: %s says which", setting.Preprocess.With("channels=bgr"))
	default:
		h.Logf("these pictures have the size of the network: they do not prove how others are resized (%s)", setting.Preprocess)
	}
}

// confirm returns the settings that make the tensors and agree with those given. spec is what the user gave, or "".
func (l *loader) confirm(given, found preprocess.Settings, spec string) (preprocess.Settings, error) {
	completed := []preprocess.Settings{given}
	if with, err := found.With(spec); err == nil {
		completed = append(completed, with)
	}
	if given.Image.CropMode == preprocess.CropNone {
		given.Image = found.Image
		completed = append(completed, given)
	}
	for _, s := range completed {
		for _, tensor := range []bool{s.Image.Tensor, found.Image.Tensor} {
			s.Image.Tensor = tensor
			if f, err := l.Compare(s); err == nil && l.Equal(f) {
				return s, nil
			}
		}
	}
	differs := ""
	if f, err := l.Compare(completed[len(completed)-1]); err == nil {
		differs = fmt.Sprintf(" (differences up to %.3g of 255 levels)", f.Levels)
	}
	return given, fmt.Errorf("the preprocessing %q does not make its tensors from its pictures%s, and %q does", completed[0].Words(),
		differs, l.fits[0].Words())
}

// names holds the names of classes against those of the reference file.
func (h *heldCard) names() error {
	card := h.card
	have := h.reference.ClassNames
	if card.ClassNames == nil && h.graph.CheckNames(have) == nil {
		if card.ClassNames = have; have != nil {
			h.Logf("names of classes: %s", h.reference.Path)
		}
		return nil
	}
	at := names.Places(have)
	for i, name := range card.ClassNames {
		if k, ok := at[names.Key(name)]; ok && k != i {
			return BadInput(fmt.Errorf("%s: class %d is %q in training, and here it is %q: the same names in another order",
				h.reference.Path, i, nameAt(have, i), name),
				"leave out "+setting.ClassNames.String()+": the names in "+filepath.Base(h.reference.Path)+" are taken",
				setting.Parity.With("off")+" goes on without this comparison")
		}
	}
	return nil
}

func nameAt(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return ""
}

// columns holds the columns of tables against the rows of the reference file.
func (h *heldCard) columns() error {
	inputs := h.model.FeedInputs()
	if len(inputs) != 1 {
		return nil
	}
	input := inputs[0].Name
	have, note := h.reference.Columns(h.model, input)
	given := h.card.Columns[input]
	switch {
	case note != "":
		h.Logf("%s: %s", h.reference.Path, note)
	case have == nil:
	case given == nil:
		h.card.Columns = map[string][]string{input: have}
		h.Logf("columns: the rows in %s show that the network takes %s", h.reference.Path, strings.Join(have, ", "))
	case slices.ContainsFunc(given, func(name string) bool { return strings.Contains(name, "*") }) || slices.Equal(given, have):
	default:
		return BadInput(fmt.Errorf("%s: the network takes the columns %s, and not %s", h.reference.Path, strings.Join(have, ", "),
			strings.Join(given, ", ")), setting.Columns.With(table.Join(have))+" is what the rows prove",
			setting.Parity.With("off")+" goes on without this comparison")
	}
	return nil
}
