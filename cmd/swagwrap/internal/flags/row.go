package flags

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/word"
)

// A Row is a flag of a command, and all that the program knows of it. The row fills a field of the command's options, refuses
// values and combinations, spells the flag again, and has its words for help pages and completion.
type Row struct {
	Name, Short string
	Usage       string       // what the flag does. The word for its value is in backquotes
	Default     string       // the text of its value if it is not given
	Preset      string       // what help says of the default, instead of Default
	Hint        string       // what to type instead of a wrong value
	Given       *bool        // gets whether the flag was given, if not nil
	Not         string       // the cases that refuse the flag
	Then        func() error // completes the options when all rows have filled their fields, or nil

	read   func(text string) (spelled string, err error) // fills the field
	want   string                                        // the numbers that it takes, or ""
	digits string                                        // the hint for a text that is no number
	bare   bool                                          // without a value
	many   bool                                          // may be given several times
	texts  []string                                      // the values that were given
}

func (r Row) reads(read func(text string) (string, error)) *Row {
	if r.read = read; r.Default != "" {
		if _, err := read(r.Default); err != nil {
			panic(fmt.Sprintf("--%s: %v", r.Name, err))
		}
	}
	return &r
}

// Text makes a row for any text.
func Text[T ~string](r Row, field *T) *Row { return OneOf(r, field) }

// OneOf makes a row for one of some words, or for any text without words.
func OneOf[T ~string](r Row, field *T, words ...string) *Row {
	return Parsed(r, field, func(s string) (v T, err error) {
		if words != nil {
			err = word.Check(s, words...)
		}
		return T(s), err
	})
}

// Parsed makes a row for a text with a form of its own.
func Parsed[T any](r Row, field *T, parse func(string) (T, error)) *Row {
	return r.reads(func(s string) (string, error) {
		v, err := parse(s)
		if err == nil {
			*field = v
		}
		return s, err
	})
}

// Repeated makes a row that may be given several times. add gets each of its texts.
func Repeated(r Row, add func(text string) error) *Row {
	r.many = true
	return r.reads(func(s string) (string, error) { return s, add(s) })
}

// Texts makes a row for texts.
func Texts(r Row, field *[]string) *Row {
	return Repeated(r, func(s string) error {
		*field = append(*field, s)
		return nil
	})
}

// Bool makes a row for a flag without a value.
func Bool(r Row, field *bool) *Row {
	r.bare = true
	return r.reads(func(s string) (string, error) {
		v, err := strconv.ParseBool(s)
		if err != nil {
			return s, fmt.Errorf("%q: want true or false", s)
		}
		*field = v
		return strconv.FormatBool(v), nil
	})
}

// A number has bounds, which stand in its row. So no command sees a number that it would multiply beyond all memory. An error has the
// form
//
//	--flag N: want 1 to 1000
//
// cmd/swagwrap tests each flag of each command with the numbers around these bounds.
func number[N int | uint64 | float64](r Row, want, digits string, parse func(string) (N, error), ok func(N) bool, fill func(N)) *Row {
	r.want, r.digits = want, digits
	return r.reads(func(s string) (string, error) {
		v, err := parse(s)
		if err != nil {
			return "", fmt.Errorf("%q: want %s", s, want)
		}
		if v == 0 {
			v = 0 // -0 prints its sign
		}
		if !ok(v) {
			return fmt.Sprint(v), fmt.Errorf("%v: want %s", v, want)
		}
		fill(v)
		return fmt.Sprint(v), nil
	})
}

func within[N int | float64](n, least, most N) bool { return n >= least && n <= most } // false for NaN

const inDigits = "digits, such as 30"

// Integer makes a row for a whole number within bounds.
func Integer(r Row, field *int, least, most int) *Row {
	return IntegerIf(r, field, fmt.Sprintf("%d to %d", least, most), func(n int) bool { return within(n, least, most) })
}

// IntegerIf is like [Integer] for other numbers than those of a range. want says which.
func IntegerIf(r Row, field *int, want string, ok func(n int) bool) *Row {
	parse := func(s string) (int, error) {
		n, err := strconv.ParseInt(s, 0, strconv.IntSize)
		return int(n), err
	}
	return number(r, want, inDigits, parse, ok, func(n int) { *field = n })
}

func realRow(r Row, least, most float64, fill func(float64)) *Row {
	parse := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	ok := func(v float64) bool { return within(v, least, most) }
	return number(r, word.Span(least, most), "a number, such as 0.5", parse, ok, fill)
}

// Real makes a row for a number within bounds.
func Real(r Row, field *float64, least, most float64) *Row {
	return realRow(r, least, most, func(v float64) { *field = v })
}

// Reals makes a row for numbers within bounds. It may be given several times.
func Reals(r Row, field *[]float64, least, most float64) *Row {
	r.many = true
	return realRow(r, least, most, func(v float64) { *field = append(*field, v) })
}

// Seed makes the row of --seed. usage says what for.
func Seed(r Row, field *uint64) *Row {
	r.Name, r.Default = "seed", "1"
	parse := func(s string) (uint64, error) { return strconv.ParseUint(s, 0, 64) }
	return number(r, "0 to 18446744073709551615", inDigits, parse, func(uint64) bool { return true }, func(n uint64) { *field = n })
}

func (r *Row) fill() error {
	if r.Given != nil {
		*r.Given = r.IsSet()
	}
	for i, text := range r.texts {
		if text == "" && r.want == "" && !r.bare { // such as that of a variable of the shell that is not set
			return console.Usagef("leave --"+r.Name+" out, or give it a value: a variable of the shell may be empty", `--%s "" is empty`, r.Name)
		}
		spelled, err := r.read(text)
		if _, complete := errors.AsType[*console.Failure](err); complete {
			return err
		}
		if err != nil {
			hint, colon := r.Hint, ":"
			if r.want != "" && spelled == "" {
				hint = r.digits
			}
			if s := err.Error(); s[0] == '"' || strings.HasPrefix(s, text) || strings.HasPrefix(s, cmp.Or(spelled, text)) {
				colon = "" // it begins with the value
			}
			return console.Usagef(hint, "--%s%s %w", r.Name, colon, err)
		}
		r.texts[i] = spelled
	}
	return nil
}

// Want says which numbers the flag takes, such as "1 to 1000". It is "" for texts.
func (r *Row) Want() string { return r.want }

// Integer reports whether the numbers are whole.
func (r *Row) Integer() bool { return r.digits == inDigits }

// words returns the flag as a user types it, with what was given.
func (r *Row) words() (words []string) {
	for _, text := range r.texts {
		if r.bare {
			words = append(words, "--"+r.Name+"="+text)
		} else {
			words = append(words, "--"+r.Name, text)
		}
	}
	return words
}

// The methods below make a Row a flag of the library. It only gets the texts.

// Set implements [flag.Value].
func (r *Row) Set(text string) error {
	if !r.many {
		r.texts = nil
	}
	r.texts = append(r.texts, text)
	return nil
}

// String implements [flag.Value].
func (r *Row) String() string {
	if n := len(r.texts); n > 0 {
		return r.texts[n-1]
	}
	return r.Default
}

// IsBoolFlag says to the library that no value follows.
func (r *Row) IsBoolFlag() bool { return r.bare }

// Apply implements [cli.Flag]. It begins a command line.
func (r *Row) Apply(set *flag.FlagSet) error {
	r.texts = nil
	for _, name := range r.Names() {
		set.Var(r, name, r.Usage)
	}
	return nil
}

// Names implements [cli.Flag].
func (r *Row) Names() []string {
	if r.Short == "" {
		return []string{r.Name}
	}
	return []string{r.Name, r.Short}
}

// IsSet implements [cli.Flag].
func (r *Row) IsSet() bool { return r.texts != nil }

// TakesValue implements [cli.DocGenerationFlag].
func (r *Row) TakesValue() bool { return !r.bare }

// GetUsage implements [cli.DocGenerationFlag].
func (r *Row) GetUsage() string { return r.Usage }

// GetValue implements [cli.DocGenerationFlag].
func (r *Row) GetValue() string { return r.Default }

// GetDefaultText implements [cli.DocGenerationFlag].
func (r *Row) GetDefaultText() string { return cmp.Or(r.Preset, r.Default) }

// GetEnvVars implements [cli.DocGenerationFlag].
func (r *Row) GetEnvVars() []string { return nil }

// IsVisible implements [cli.VisibleFlag].
func (r *Row) IsVisible() bool { return true }

// A Table has the flags of a command.
type Table []*Row

// Join concatenates tables.
func Join(tables ...Table) Table { return slices.Concat(tables...) }

// Library returns the table as the library takes it.
func (t Table) Library() (all []cli.Flag) {
	for _, r := range t {
		all = append(all, r)
	}
	return all
}

// TableOf returns the table of a command.
func TableOf(c *cli.Command) (t Table) {
	for _, f := range c.Flags {
		if r, ok := f.(*Row); ok {
			t = append(t, r)
		}
	}
	return t
}

// Row returns the row with a name, or nil.
func (t Table) Row(name string) *Row {
	for _, r := range t {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// Check fills the options with what was given. It refuses values, but no combinations of flags.
func (t Table) Check() error {
	for _, r := range t {
		if err := r.fill(); err != nil {
			return err
		}
	}
	return nil
}

// Fill fills the options with what was given, and completes them.
func (t Table) Fill() error {
	if err := t.Check(); err != nil {
		return err
	}
	return t.Complete()
}

// Complete completes the options after [Table.Check]. It refuses combinations of flags.
func (t Table) Complete() error {
	for _, r := range t {
		if r.Then != nil {
			if err := r.Then(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Parse fills the options with the words of a command line. It returns the arguments behind the flags.
func (t Table) Parse(words []string) (args []string, err error) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	for _, r := range t {
		r.Apply(set)
	}
	if err = set.Parse(words); err == nil {
		err = t.Fill()
	}
	return set.Args(), err
}

// Words spells those of the named flags that were given, in the order of the names, for another command.
func (t Table) Words(names ...string) (words []string) {
	for _, name := range names {
		if r := t.Row(name); r != nil {
			words = append(words, r.words()...)
		}
	}
	return words
}

// Is reports whether a flag was given.
func (t Table) Is(name string) bool {
	r := t.Row(name)
	return r != nil && r.IsSet()
}

// First returns the first flag that was given and that a case refuses, such as --rank, or "".
func (t Table) First(refusing string) string {
	for _, r := range t {
		if r.IsSet() && slices.Contains(strings.Fields(r.Not), refusing) {
			return "--" + r.Name
		}
	}
	return ""
}

// Refuse returns an error if a flag is given that a case refuses. In the message, --* stands for that flag.
func (t Table) Refuse(refusing, hint, message string) error {
	given := t.First(refusing)
	if given == "" {
		return nil
	}
	return console.Usagef(hint, "%s", strings.Replace(message, "--*", given, 1))
}

func init() { setting.Speak("swagwrap", Typed) }

// Typed returns the name of a flag, or its letter, as a user types it.
func Typed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
