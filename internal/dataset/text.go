package dataset

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/swagwrap/swagwrap/internal/dataset/listing"
	"github.com/swagwrap/swagwrap/internal/dataset/text"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/target"
)

// maxTokenizer bounds the size of a tokenizer.json in bytes. Gemma's takes 33 MB.
const maxTokenizer = 128 << 20

// texts are the windows of a text. Example i is window i/len(spans) of row i%len(spans).
type texts struct {
	*examples
	*text.Tokens
	settings text.Cutting
	spans    [][]text.Window                            // of each row, equally many
	tokens   int                                        // the field that takes tokens
	longest  int                                        // window
	fixed    bool                                       // shorter windows are filled up
	encode   func(content []byte) (*text.Tokens, error) // nil for an array of tokens
	opts     Options
}

// Stateful is data whose examples continue each other: the windows of rows of a text. Example i is row i%Rows() of
// window i/Rows(). Example i+Rows() continues example i, so a network with states takes those of example i for it.
type Stateful interface {
	Dataset
	// Rows returns the examples of one window, at least 1. Len is a multiple of it.
	Rows() int
	// Past returns the number of tokens behind the states before example i. It is 0 where they are zero: in the first
	// window, or where a document starts.
	Past(i int) int
	// Source returns the data that these rows were taken from, or the data itself; see [Rows].
	Source() Stateful
}

// rowed is a text whose windows continue each other; see [Stateful].
type rowed struct {
	*texts
	whole *rowed // nil for all rows
}

// Rows implements [Stateful].
func (d *rowed) Rows() int { return len(d.spans) }

// Past implements [Stateful].
func (d *rowed) Past(i int) int { return d.span(i).Past }

// Source implements [Stateful].
func (d *rowed) Source() Stateful { return cmp.Or(d.whole, d) }

func openText(inputs []string, opts Options) (Dataset, error) {
	if len(inputs) > 1 {
		return nil, fmt.Errorf("%s: another text, want one", inputs[1])
	}
	path := inputs[0]
	d := &texts{
		examples: &examples{fields: slices.Clone(opts.Fields), classNames: opts.Known.Classes, asSeen: true},
		settings: *opts.Text,
		opts:     opts,
	}
	if err := d.load(path, opts); err != nil {
		return nil, err
	}
	how := d.settings
	how.Vocabulary, how.Tokenizer = "", "" // their contents are sources
	d.chosenOptions = how
	err := d.inputs(opts.Fields)
	if err == nil {
		err = d.cut()
	}
	if err == nil {
		err = d.inRange(opts)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d.prepared(), nil
}

func (d *texts) load(path string, opts Options) error {
	vocabulary := opts.Known.Classes
	of := cmp.Or(d.settings.Vocabulary, "class names")
	if p := d.settings.Vocabulary; p != "" {
		var err error
		if vocabulary, err = listing.ReadClassNames(p); err != nil {
			return err
		}
		d.classNames = vocabulary
		content, err := file.Read(p, text.MaxTokens)
		if err != nil {
			return err
		}
		d.sources = append(d.sources, sourceOf(p, content))
	}
	if n := d.settings.Classes; n > 0 && vocabulary != nil && len(vocabulary) != n {
		return fmt.Errorf("%s: %d entries, and the network has scores for %d: want the vocabulary of its training", of, len(vocabulary), n)
	}
	if kind, err := listing.KindOf(path); err == nil && kind == listing.KindArray {
		return d.array(path, vocabulary)
	}
	content, err := file.Read(path, text.MaxTokens)
	if err != nil {
		return err
	}
	d.sources = append([]Source{sourceOf(path, content)}, d.sources...)
	switch {
	case d.settings.Tokenizer != "":
		err = d.tokenizer()
	case vocabulary == nil:
		err = file.Error(path, ErrVocabulary)
	default:
		d.encode, err = text.Encoder(vocabulary)
		err = file.Error(of, err)
	}
	if err != nil {
		return err
	}
	d.Tokens, err = d.encode(content)
	return file.Error(path, err)
}

// tokenizer reads the tokenizer of a model of Hugging Face. Its network may have scores for more tokens, which fill up a
// table.
func (d *texts) tokenizer() error {
	path := d.settings.Tokenizer
	b, err := file.Read(path, maxTokenizer)
	if err != nil {
		return err
	}
	t, err := d.settings.Open(b)
	if n := d.settings.Classes; err == nil && n > 0 && t.Size() > n {
		err = fmt.Errorf("numbers of tokens up to %d, and the network has scores for %d: %w", t.Size()-1, n, ErrTokenizer)
	}
	if err != nil {
		return file.Error(path, err)
	}
	d.sources = append(d.sources, sourceOf(path, b))
	d.encode = func(content []byte) (*text.Tokens, error) {
		tokens, err := t.Encode(content)
		if len(content) > 0 && utf8.Valid(content) { // then it is the tokenizer that does not suit
			err = file.Error(path, err)
		}
		return tokens, err
	}
	return nil
}

// sourceOf describes a file that the numbers of tokens depend on.
func sourceOf(path string, content []byte) Source {
	sum := sha256.Sum256(content)
	return Source{Path: path, SHA256: hex.EncodeToString(sum[:])}
}

// errExamples is the error of an array that holds examples, and not one text.
var errExamples = errors.New("an array of examples")

// ErrTokenizer is the error of a tokenizer that another network was trained with.
var ErrTokenizer = errors.New("want the tokenizer of its training")

// ErrVocabulary is the error of a text whose words have no numbers.
var ErrVocabulary = errors.New("a text, and no vocabulary says which number each word has")

func (d *texts) array(path string, vocabulary []string) error {
	f, err := numpy.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	role := numpy.Role{What: "tokens", Names: []string{"tokens", "ids", "input_ids", "text"}, Want: numpy.Labels.Want, OK: numpy.Labels.OK}
	key := d.settings.Key
	if key == "" {
		if key, err = f.Pick(role, ""); err != nil {
			return err
		}
	}
	x, err := f.Read(key, role)
	if err != nil {
		return err
	}
	if len(x.Shape) != 1 && !d.settings.Given {
		return errExamples
	}
	switch s := &d.settings; {
	case len(x.Shape) == 1:
	case len(x.Shape) == 2 && s.Window == 0 && !s.Reset && (s.Rows == 0 || s.Rows == x.Shape[0]):
		s.Rows = x.Shape[0]
	default:
		return fmt.Errorf("%s: an array of shape %d, want the numbers of all tokens of a text, shape [N], or [rows N] for rows without "+
			"window and reset=documents", f.Where(key), x.Shape)
	}
	ids := make([]int32, product(x.Shape))
	for i := range ids {
		v, _ := x.Int64(i)
		if ids[i] = int32(v); v < 0 || int64(ids[i]) != v {
			return fmt.Errorf("%s: token %d is %d, want 0 or more", f.Where(key), i, v)
		}
	}
	d.sources = append([]Source{{Path: path, SHA256: f.SHA256}}, d.sources...)
	d.Tokens = text.FromIDs(ids, vocabulary)
	return nil
}

// inputs finds what each input takes, and sets the lengths of windows.
func (d *texts) inputs(fields []Field) error {
	d.tokens = -1
	for k, f := range fields {
		if len(f.Shape) != 1 {
			return fmt.Errorf("input %q takes examples of shape %d, want tokens in one row", f.Name, f.Shape)
		}
		if Given(f.Name) == "" {
			if d.tokens >= 0 {
				return fmt.Errorf("both %q and %q could take the tokens: only inputs named mask, position or type take something else",
					fields[d.tokens].Name, f.Name)
			}
			d.tokens = k
		}
	}
	if d.tokens < 0 {
		return errors.New("no input of the network takes tokens")
	}
	s, fixed := &d.settings, int(max(0, fields[d.tokens].Shape[0]))
	s.Preset(fixed)
	d.longest, d.fixed = s.Longest(), fixed > 0
	if d.fixed && d.longest != fixed {
		return text.CutErrorf("windows of %d tokens, and the network takes %d: say bptt=%d, or window=%d", d.longest, fixed, fixed, fixed)
	}
	return d.context(fields)
}

// context sets how many tokens states may hold: at most the positions that the network knows, if it has a table of them.
func (d *texts) context(fields []Field) error {
	s, most := &d.settings, d.settings.Context
	for _, f := range fields {
		if n := int(f.Rows); Given(f.Name) == "position" && n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	switch {
	case most > 0 && d.longest > most:
		return text.CutErrorf("windows of %d tokens, and a context of %d: say bptt=%d, or window=%d", d.longest, most, most, most)
	case s.Window > 0 || s.Fresh:
	case most == 0 && s.Grows:
		return errors.New("the network has a cache of keys and values, and its graph does not say how many tokens it knows: say " +
			"context=N, as in its config.json (max_position_embeddings)")
	default:
		s.Context = most
	}
	return nil
}

// Given returns what an input of a name takes besides tokens: "mask", "position" or "type", as Hugging Face names them, or "".
func Given(name string) string {
	for _, what := range []string{"mask", "position", "type"} {
		if strings.Contains(strings.ToLower(name), what) {
			return what
		}
	}
	return ""
}

func (d *texts) cut() (err error) {
	if d.spans, err = d.settings.Cut(d.Tokens, d.longest); err != nil {
		return err
	}
	most := 0
	for _, row := range d.spans {
		for _, s := range row {
			most = max(most, s.N)
		}
	}
	if !d.fixed && d.n == 0 { // a rewritten text keeps its length, so that the task stays
		d.longest = most
	}
	switch {
	case d.longest <= text.MaxWindow:
	case d.fixed:
		return fmt.Errorf("the network takes windows of %d tokens, want at most %d", d.longest, text.MaxWindow)
	default:
		return text.CutErrorf("windows of %d tokens, want at most %d: say bptt=N, or window=N", d.longest, text.MaxWindow)
	}
	for k := range d.fields {
		d.fields[k].Shape = []int64{int64(d.longest)}
	}
	d.setShape([]int64{int64(d.longest * len(d.fields))})
	d.size = Size{}
	for _, f := range d.fields {
		d.size, d.decoded = d.size.plus(f.Size()), append(d.decoded, false)
	}
	return nil
}

// inRange fails if a token has no scores or no row in the table of the input.
func (d *texts) inRange(opts Options) error {
	f := d.fields[d.tokens]
	_, most := f.Limits()
	why := f.takes().String()
	if n := int64(opts.Text.Classes); n > 0 && n-1 < most {
		most, why = n-1, fmt.Sprintf("the network has scores for %d tokens", n)
	}
	for i, id := range d.IDs {
		if int64(id) > most {
			return fmt.Errorf("token %d is %d, want 0 to %d: %s", i, id, most, why)
		}
	}
	return nil
}

func (d *texts) span(i int) text.Window { return d.spans[i%len(d.spans)][i/len(d.spans)] }

// Read implements [Dataset]. Positions behind the end of a window are 0 in each input.
func (d *texts) Read(dst Values, i int) error {
	d.check(dst.size(), i)
	dst.Clear()
	s := d.span(i)
	for _, f := range d.fields {
		var own Values
		own, dst = dst.Cut(f.Size())
		for p := range s.N {
			v := int64(0)
			switch Given(f.Name) {
			case "":
				v = int64(d.IDs[s.First+p])
			case "mask":
				v = 1
			case "position":
				v = int64(s.Past + p)
			}
			if f.Ints() {
				own.Ints[p] = v
			} else {
				own.Floats[p] = float32(v)
			}
		}
	}
	return nil
}

// Length implements the function [Length].
func (d *texts) Length(_, i int) int {
	if d.fixed {
		return -1
	}
	return d.span(i).N
}

// positionsUsed implements the function positionsUsed.
func (d *texts) positionsUsed(i, _ int) int { return d.span(i).N }

// blocks is the number of blocks of a text without documents. Few blocks are long, so that they depend little on each
// other, and intervals from fewer would be too narrow.
const blocks = 64

// label returns the tokens that the positions of example i predict.
func (d *texts) label(i int) (target.Target, error) {
	s, n := d.span(i), d.longest
	t := target.Target{Classes: slices.Repeat([]int{target.Unknown}, n), Positions: n, Text: &target.Text{Unit: make([]int, n)}}
	if d.Bytes != nil {
		t.Text.Characters, t.Text.Bytes = make([]int, n), make([]int, n)
	}
	for p := s.From; p < s.To; p++ {
		at := s.First + p + 1
		t.Classes[p] = int(d.IDs[at])
		if t.Text.Unit[p] = at / max(n, len(d.IDs)/blocks); d.Document != nil {
			t.Text.Unit[p] = int(d.Document[at])
		}
		if d.Bytes != nil {
			t.Text.Characters[p], t.Text.Bytes[p] = int(d.Characters[at]), int(d.Bytes[at])
		}
	}
	return t, nil
}

// CutOf returns how the text of a dataset was cut. ok is false for other data.
func CutOf(d Dataset) (c text.Cut, ok bool) {
	switch v := d.(type) {
	case *rowed:
		c, _ = CutOf(v.texts)
		c.Stateful = !c.Fresh
		return c, true
	case *view:
		return CutOf(v.Dataset)
	case *texts:
		c = text.Cut{Cutting: v.settings, Tokens: len(v.IDs), Windows: v.n, Unknown: v.Unknown, Documents: v.Documents,
			Characters: v.settings.Tokenizer == "" && text.IsCharacters(v.classNames)}
		for _, row := range v.spans {
			for _, s := range row {
				c.Predictions += s.To - s.From
			}
		}
		return c, true
	}
	return c, false
}

// RowsOf returns the number of rows of a text whose windows continue each other, and of windows of each row. Both are 0 for
// other data.
func RowsOf(d Dataset) (rows, windows int) {
	if t, ok := d.(*rowed); ok {
		return len(t.spans), len(t.spans[0])
	}
	return 0, 0
}

// Rows returns the rows from … to−1 of a text that was cut into rows, or nil for other data.
func Rows(d Dataset, from, to int) Dataset {
	all, ok := d.(*rowed)
	if !ok {
		return nil
	}
	part, own := *all.texts, *all.examples
	part.spans, part.examples = all.spans[from:to], &own
	part.prepare()
	own.id = IDOf(all.id, "rows", from, to)
	return &rowed{&part, cmp.Or(all.whole, all)}
}

func (d *texts) prepared() Dataset {
	d.prepare()
	if d.settings.Window > 0 {
		return d
	}
	return &rowed{d, nil}
}

// prepare sets what depends on the windows.
func (d *texts) prepare() {
	d.n = len(d.spans) * len(d.spans[0])
	base := filepath.Base(d.sources[0].Path)
	d.name = func(i int) string {
		s := d.span(i)
		return fmt.Sprintf("%s[%d:%d]", base, s.First, s.First+s.N)
	}
	d.labels = target.Lazy(d.n, d.label)
}
