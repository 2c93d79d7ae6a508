package augment

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.starlark.net/syntax"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/setting"
)

// advice tells the user what to do about training that this package cannot repeat.
func advice() string {
	return "save what the training loader yields as an array instead (" + setting.BNData.String() + ")"
}

// maxText is far more than a pipeline needs, in bytes.
const maxText = 1 << 16

// Parse reads a pipeline. Transforms are separated by commas or line ends, with arguments as in Python:
//
//	RandomCrop(32, padding=4), RandomHorizontalFlip
//
// Parse also reads the source or the printed form of a Compose of torchvision, v1 or v2. It knows the
// presets none, cifar (RandomCrop(padding=4), RandomHorizontalFlip) and imagenet (RandomResizedCrop,
// RandomHorizontalFlip). A missing size means the network's. An unknown transform is an error, and so is an unknown
// argument of a transform that changes pixels. A printed RandomCrop of v1 omits pad_if_needed, fill and padding_mode,
// so Parse assumes the defaults.
func Parse(spec string) (Pipeline, error) {
	if len(spec) > maxText {
		return Pipeline{}, fmt.Errorf("%d bytes of text, want at most %d", len(spec), maxText)
	}
	list, err := expressions(spec)
	if err != nil {
		return Pipeline{}, err
	}
	var b builder
	for _, e := range list {
		_, e = argument(e) // train = Compose([...
		if err := b.item(e, false); err != nil {
			return Pipeline{}, err
		}
	}
	if b.steps == 0 {
		return Pipeline{}, errors.New("empty, want none, cifar, imagenet, or transforms")
	}
	return b.Pipeline, nil
}

// ReadFile reads a pipeline from a file with text for [Parse].
func ReadFile(path string) (Pipeline, error) {
	text, err := file.Read(path, maxText)
	if err != nil {
		return Pipeline{}, err
	}
	p, err := Parse(string(text))
	return p, file.Error(path, err)
}

// presets are the pipelines with names.
var presets = map[string][]op{
	"none":     nil,
	"cifar":    {&randomCrop{padding: [4]int{4, 4, 4, 4}, mode: constant}, &flip{p: 0.5}},
	"imagenet": {&randomResizedCrop{scale: cropScale, ratio: cropRatio}, &flip{p: 0.5}},
}

// builder collects the steps of a pipeline in order.
type builder struct {
	Pipeline
	steps  int
	tensor bool // a conversion to a tensor has been seen
}

// item adds a transform, or those of a Compose. printed says that it is in the printed form of a Compose.
func (b *builder) item(e syntax.Expr, printed bool) error {
	call, isCall := e.(*syntax.CallExpr)
	if !isCall {
		call = &syntax.CallExpr{Fn: e}
	}
	name := nameOf(call.Fn)
	if name == "" {
		return errors.New("want a transform")
	}
	if ops, ok := presets[name]; ok {
		b.steps++
		b.ops = append(b.ops, ops...)
		return nil
	}
	short := name[strings.LastIndexByte(name, '.')+1:] // transforms.v2.RandomCrop
	newTransform, ok := transforms[short]
	switch {
	case short == "Compose" && len(call.Args) == 0:
		return errors.New("no transforms in Compose")
	case short == "Compose":
		return b.compose(call.Args)
	case slices.Contains(conversions, short):
		b.steps, b.tensor = b.steps+1, true
		return nil
	case !ok:
		known := slices.Sorted(maps.Keys(transforms))
		return fmt.Errorf("%.40s is not supported, want %s: %s", short, strings.Join(known, ", "), advice())
	}
	b.steps++
	a := &arguments{printed: printed, tensor: b.tensor}
	err := a.set(call.Args)
	if err == nil {
		err = b.add(newTransform(), a)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", short, err)
	}
	return nil
}

// compose adds the transforms of a Compose. They are in a list, except in the printed form.
func (b *builder) compose(items []syntax.Expr) error {
	printed := true
	if len(items) == 1 {
		if list, ok := items[0].(*syntax.ListExpr); ok {
			items, printed = list.List, false
		}
	}
	for _, e := range items {
		if err := b.item(e, printed); err != nil {
			return err
		}
	}
	return nil
}

// add reads the arguments of t, and adds it to the pipeline.
func (b *builder) add(t transform, a *arguments) error {
	if err := a.bind(t); err != nil {
		return err
	}
	switch t := t.(type) {
	case *erase:
		_, hasValue := a.named["value"]
		if _, hasInplace := a.named["inplace"]; a.printed && hasInplace && !hasValue {
			t.value = nil // version 2 prints no value if it is random
		}
		b.erases = append(b.erases, t)
	case *normalize:
		switch {
		case t.mean == nil:
			return errors.New("mean is missing")
		case t.std == nil:
			return errors.New("std is missing")
		case len(b.erases) > 0:
			return errors.New("after RandomErasing, which is done on normalised values here: want Normalize before it. If training " +
				"erased first, " + advice())
		case b.Mean != nil:
			return errors.New("a second time, want one")
		}
		b.Mean, b.Std = t.mean, t.std
	case op:
		switch {
		case len(b.erases) > 0:
			return errors.New("after RandomErasing, want it before: erasing is done last, on normalised values")
		case b.Mean != nil:
			return errors.New("after Normalize, want it before: pictures are changed before they are normalised")
		}
		b.ops = append(b.ops, t)
	}
	return nil
}

// conversions are transforms that change no pixel.
var conversions = []string{"ToTensor", "PILToTensor", "ToImage", "ToImageTensor", "ToDtype", "ConvertImageDtype", "ConvertDtype",
	"ToPureTensor", "ToPILImage", "MaybeToTensor", "MaybePILToTensor"}
