package console

import (
	"errors"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/names"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/tokenizer"
)

// Opened gives the errors of package open their exit codes, and the words of this program.
func (a *Env) Opened(err error) error {
	e, ok := errors.AsType[*open.Error](err)
	if !ok || is[*Failure](err) {
		return err
	}
	f := &Failure{codeOf(e), err, slices.Clone(e.Hints)}
	if k, ok := errors.AsType[*open.KindError](e); ok {
		what, hints := a.wrongKind(k)
		if f.hints = hints; what != k.Error() {
			f.err = errors.New(strings.Replace(err.Error(), k.Error(), what, 1))
		}
	}
	if d, ok := errors.AsType[*open.DataError](e); ok {
		f.hints = dataHints(d)
	}
	if _, ok := errors.AsType[*open.CheckpointError](e); ok {
		f.hints = []string{"fit again, or name the folder with the right checkpoints: --checkpoints FOLDER"}
	}
	if s, ok := errors.AsType[*open.SingleError](e); ok {
		f.hints = []string{
			"the network itself: " + singleCommand(s.Path),
			"for SWAG, save a checkpoint in each of 20 more epochs at a constant learning rate; swagwrap compare prints the lines for that",
		}
	}
	return f
}

// codeOf returns the exit code of an error of package open.
func codeOf(e *open.Error) int {
	if e.Usage {
		return exitUsage
	}
	return exitData
}

// dataHints returns hints for data that could not be opened.
func dataHints(err error) []string {
	switch {
	case errors.Is(err, preprocess.ErrNoSize):
		return []string{"say which size: fit --preprocess input-size=SIZE, or how the model was trained: fit --preprocess imagenet"}
	case errors.As(err, new(*names.OrderError)):
		return []string{"--columns A,B,C says the order that training had; fit --columns remembers it"}
	case errors.As(err, new(*names.MismatchError)):
		return []string{"all files of a command, and the model card, must have the same names of columns; their order does not matter"}
	case errors.Is(err, names.ErrReading):
		return []string{"--labels-as numbers: labels and class folders such as 10 are the numbers of classes",
			"--labels-as names: they are names, which fit --class-names PATH numbers"}
	case errors.As(err, new(*names.CountError)):
		return []string{"fit --class-names PATH says all names in the order of their numbers: a file with one a line, or the folder of " +
			"training", "--bn-data or --val with all classes, in the same command, says them too"}
	case errors.As(err, new(*names.ClassError)):
		return []string{"the names of a class must be the same in all files of a command, and on the model card: swagwrap inspect " +
			"POSTERIOR shows these"}
	case errors.Is(err, listing.ErrColumn):
		return []string{"--label-column NAME and --path-column NAME say which columns have the labels and the paths"}
	case errors.Is(err, table.ErrColumns):
		return []string{"--columns A,B,C says it, or of several inputs --columns INPUT=A,B,C; fit --columns remembers it"}
	case errors.Is(err, dataset.ErrArrays):
		return []string{"--arrays pixels normalises them as the model card says", "--arrays seen feeds them to the network unchanged"}
	case errors.Is(err, dataset.ErrVocabulary):
		return []string{"--text vocabulary=FILE has a word for each number, one a line; fit --class-names FILE remembers it",
			"--text tokenizer=tokenizer.json is for models of Hugging Face"}
	case errors.Is(err, tokenizer.ErrUnsupported):
		return []string{"make the numbers of the tokens in Python, and give them as an .npy file"}
	case errors.Is(err, tokenizer.ErrNumbers), errors.Is(err, dataset.ErrTokenizer):
		return []string{"the network's own file is needed: tokenizer.save_pretrained(FOLDER) in Python writes FOLDER/tokenizer.json"}
	case errors.As(err, new(text.CutError)):
		return []string{"--text 'rows=10 bptt=35' cuts a text into 10 rows, and each row into windows of 35 tokens; --text 'window=1024 " +
			"stride=512' into windows that overlap"}
	case errors.Is(err, dataset.ErrNoPad):
		return []string{"fit --pad says it, such as --pad input_ids=0,attention_mask=0: the tokenizer's pad token, and 0 for masks"}
	}
	return nil
}
