package inputs

import (
	"errors"
	"fmt"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/task"
)

// cacheBytes limits the cache of decoded images. 7,000 images of 224×224 fit.
const cacheBytes = 1 << 30

// OpenData opens examples with a cache, because several members read them.
func (a *Env) OpenData(d flags.Data, path, labels string, n *infer.Network) (dataset.Dataset, error) {
	opts, err := DataOptions(d, labels, n)
	if err != nil {
		return nil, err
	}
	return a.openCached(path, opts, []*infer.Network{n})
}

// openCached opens examples. The networks learn the names in them, so those in later data are compared.
func (a *Env) openCached(path string, opts dataset.Options, networks []*infer.Network) (dataset.Dataset, error) {
	opts.Cache = cacheBytes
	d, err := dataset.Open([]string{path}, opts)
	if err == nil {
		infer.Learn(networks, d)
	}
	return d, a.WrongData(err, path)
}

// DataOptions returns the options for the examples of a network. It fails if these do not fit into --memory. Decoding uses at most --memory. By default the limit
// is the memory planned for a network, or the memory that most images need, whichever is smaller.
func DataOptions(d flags.Data, labels string, n *infer.Network) (dataset.Options, error) {
	memory := min(infer.DefaultMemory(), listing.DefaultMemory)
	if err := n.Fits(d.Memory); err != nil {
		return dataset.Options{}, console.BadInput(err)
	}
	if d.Memory > 0 {
		memory = infer.MemoryLimit(d.Memory)
	}
	card := n.Posterior.Card
	p, err := flags.Preprocessing(d.Preprocess, card)
	if err != nil {
		return dataset.Options{}, err
	}
	opts := dataset.Options{Arrays: d.Arrays, Labels: labels, Truth: task.Truth(card.Task), Preprocess: p, Shape: n.Input.Shape[1:], Fields: n.Fields(), Uint8: n.TakesBytes(), Memory: memory}
	opts.Positions = n.Positions()
	opts.Known, opts.LabelsAs, opts.Named = n.Names.Clone(), d.LabelsAs, d.Named
	opts.Classes, opts.Binary = n.Classes()
	cutting := d.Text
	switch {
	case card.Task == task.NextToken:
		cutting.Classes, cutting.Grows = n.Layout().Count, n.Grows()
		opts.Text = &cutting
	case cutting.Given:
		return opts, console.Usagef("fit --task "+task.NextToken+" says that it is a language model", "--text: the model card says that the network has the task %q", card.Task)
	}
	opts.Columns, opts.Pad, err = flags.Columns(d.Columns, card, n.Graph)
	return opts, err
}

// OpenLabelled is like [OpenData], for examples that must have labels.
func (a *Env) OpenLabelled(o flags.Data, path, labels string, n *infer.Network) (dataset.Dataset, error) {
	d, err := a.OpenData(o, path, labels, n)
	if err == nil && d.Labels().None() {
		err = console.BadInput(fmt.Errorf("%s: has no labels", path), "an .npz file has them as an array named labels, a table or a list in a column label, or in the one of --label-column; for other files: --labels FILE")
	}
	if err == nil {
		err = anyKnown(path, d)
	}
	if err == nil {
		err = targetsFit(path, d, n)
	}
	return d, err
}

// anyKnown fails if no label of the examples is known.
func anyKnown(path string, d dataset.Dataset) error {
	known, err := d.Labels().AnyKnown()
	if err != nil || known {
		return console.BadInput(err)
	}
	return console.BadInput(fmt.Errorf("%s: no label is known", path), "labels below 0 count nowhere, and neither does that of fit --ignore-index")
}

// targetsFit fails if the examples of a regression have the wrong number of targets, as far as the graph gives that
// number.
func targetsFit(path string, d dataset.Dataset, n *infer.Network) error {
	if d.Labels().Width == 0 || n.Layout().Count == 0 {
		return nil
	}
	t, err := n.Task(n.Layout())
	if err == nil {
		err = t.CheckLabel(d.Labels().At(0))
	}
	if wrong := (*task.TargetsError)(nil); errors.As(err, &wrong) {
		return console.BadInput(fmt.Errorf("%s: %w", path, err), wrong.Hints()...)
	}
	return nil // scoring refuses others
}

// Shortened returns the first of several inputs, and the number of the others.
func Shortened(inputs []string) string {
	if len(inputs) == 1 {
		return inputs[0]
	}
	return fmt.Sprintf("%s and %d more", inputs[0], len(inputs)-1)
}

// DataHints returns hints for data that could not be opened.
func DataHints(err error) []string {
	switch {
	case errors.Is(err, preprocess.ErrNoSize):
		return []string{"say which size: fit --preprocess input-size=SIZE, or how the model was trained: fit --preprocess imagenet"}
	case errors.As(err, new(*names.OrderError)):
		return []string{"--columns A,B,C says the order that training had; fit --columns remembers it"}
	case errors.As(err, new(*names.MismatchError)):
		return []string{"all files of a command, and the model card, must have the same names; their order does not matter", "--columns A,B,C says which columns feed the network; fit --columns remembers it"}
	case errors.Is(err, names.ErrReading):
		return []string{"--labels-as numbers: labels and class folders such as 10 are the numbers of classes", "--labels-as names: they are names, which fit --class-names PATH numbers"}
	case errors.As(err, new(*names.CountError)):
		return []string{"fit --class-names PATH says all names in the order of their numbers: a file with one a line, or the folder of training", "--bn-data or --val with all classes, in the same command, says them too"}
	case errors.As(err, new(*names.ClassError)):
		return []string{"the names of a class must be the same in all files of a command, and on the model card: swagwrap inspect POSTERIOR shows these"}
	case errors.Is(err, listing.ErrColumn):
		return []string{"--label-column NAME and --path-column NAME say which columns have the labels and the paths"}
	case errors.Is(err, table.ErrColumns):
		return []string{"--columns A,B,C says it, or of several inputs --columns INPUT=A,B,C; fit --columns remembers it"}
	case errors.Is(err, dataset.ErrArrays):
		return []string{"--arrays pixels normalises them as the model card says", "--arrays seen feeds them to the network unchanged"}
	case errors.Is(err, dataset.ErrVocabulary):
		return []string{"--text vocabulary=FILE has a word for each number, one a line; fit --class-names FILE remembers it", "--text tokenizer=tokenizer.json is for models of Hugging Face"}
	case errors.Is(err, text.ErrUnsupported):
		return []string{"make the numbers of the tokens in Python, and give them as an .npy file"}
	case errors.Is(err, text.ErrNumbers), errors.Is(err, dataset.ErrTokenizer):
		return []string{"the network's own file is needed: tokenizer.save_pretrained(FOLDER) in Python writes FOLDER/tokenizer.json"}
	case errors.As(err, new(text.CutError)):
		return []string{"--text 'rows=10 bptt=35' cuts a text into 10 rows, and each row into windows of 35 tokens; --text 'window=1024 stride=512' into windows that overlap"}
	case errors.Is(err, dataset.ErrNoPad):
		return []string{"fit --pad says it, such as --pad input_ids=0,attention_mask=0: the tokenizer's pad token, and 0 for masks"}
	}
	return nil
}
