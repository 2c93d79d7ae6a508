package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
)

// A hint says what to type. So every command and every flag in the hints of a script is parsed as the program parses it, and a
// complete command after an error runs.

// hintLines returns the texts of the lines "hint: " and "next: " of standard error, with the lines that continue them.
func hintLines(stderr string) (texts []string) {
	continues := false
	for line := range strings.Lines(stderr) {
		line = strings.TrimSuffix(line, "\n")
		text, hint := strings.CutPrefix(line, "hint: ")
		if !hint {
			text, hint = strings.CutPrefix(line, "next: ")
		}
		if !hint && continues {
			text, hint = strings.CutPrefix(line, "      ")
		}
		if continues = hint; hint {
			texts = append(texts, strings.TrimSpace(text))
		}
	}
	return texts
}

// hintWord matches a word of a hint. One in quotes may have spaces. An apostrophe within a word begins no quotes.
var hintWord = regexp.MustCompile(`(?:[\w.-]*=)?(?:'[^']*'(?:\\''[^']*')*|"[^"]*")\S*|\S+`)

// proseWords follow the name of the program, of a command or of a flag in a sentence about it. They are no command, no value and no
// argument.
var proseWords = strings.Fields(`a alone and for goes in is it keeps makes needs of or remembers replaces says stands stores takes
	the there to with wrote`)

// otherPrograms have flags of their own.
var otherPrograms = strings.Fields("dmesg npm nvidia-smi pip python sbatch ulimit")

// standsFor matches a word for which the user puts something: FILE, A,B,C, N%, CKPT.pt..., <file>.
var standsFor = regexp.MustCompile(`[A-Z…<]|\.\.\.`)

// A hintReader reads the words of a hint.
type hintReader struct {
	program *cli.App
	failed  string // the command that gave the hint, or ""
	folder  string // where it ran
	words   []string
	at      int
	faults  []string
	ready   [][]string // commands that are complete
}

// readHint returns what is wrong with a hint, and its complete commands.
func readHint(failed, folder, text string) (faults []string, ready [][]string) {
	if !strings.Contains(text, "swagwrap") && !strings.Contains(text, "-") {
		return nil, nil
	}
	a := newApp(&console.Env{Stdout: console.NewStdout(io.Discard), Stderr: io.Discard}, func() {})
	r := &hintReader{
		program: a.cli(),
		failed:  failed,
		folder:  folder,
		words:   hintWord.FindAllString(text, -1),
	}
	for r.at < len(r.words) {
		r.read()
	}
	return r.faults, r.ready
}

func (r *hintReader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// next takes the next word, and says whether a command ends behind it.
func (r *hintReader) next() (word string, ends bool) {
	raw := r.words[r.at]
	r.at++
	word = strings.TrimRight(strings.TrimLeft(raw, "`("), "`,;:)?")
	word = strings.TrimPrefix(word, "[")
	word = strings.TrimSuffix(word, "]")
	ends = strings.ContainsAny(raw[len(raw)-1:], "`,;:)?")
	return strings.NewReplacer(`'\''`, "'", `'`, "", `"`, "").Replace(word), ends
}

// peek returns the next word without taking it, or "".
func (r *hintReader) peek() string {
	if r.at == len(r.words) {
		return ""
	}
	word, _ := r.next()
	r.at--
	return word
}

func isFlag(word string) bool { return hintFlag.MatchString(word) }

var hintFlag = regexp.MustCompile(`^(--[a-z]|-[a-zA-Z]($|=))`)

// read reads a command, a flag, or a word of a sentence.
func (r *hintReader) read() {
	word, ends := r.next()
	switch follows := r.peek(); {
	case slices.Contains(otherPrograms, word):
		for !ends && r.at < len(r.words) {
			_, ends = r.next()
		}
	case isFlag(word):
		r.flag(word, ends, r.mentioned())
	case ends:
	case word == "swagwrap" && r.program.Command(follows) != nil:
		_, ends = r.next()
		r.command(follows, ends, true)
	case word == "swagwrap" && follows != "help" && follows != "" && !isFlag(follows) && !standsFor.MatchString(follows) &&
		!slices.Contains(proseWords, follows):
		r.fault("swagwrap has no command %q", follows)
	case r.program.Command(word) != nil && isFlag(follows):
		r.command(word, false, false)
	}
}

// mentioned returns the commands to which a flag that stands alone may belong: the one that gave the hint, and those that the
// hint names.
func (r *hintReader) mentioned() (all []*cli.Command) {
	from := []string{r.failed}
	if r.failed == "setup" { // its hints also say how a command takes another library
		from = append(from, "score")
	}
	for _, word := range append(from, r.words...) {
		if c := r.program.Command(strings.Trim(word, "`,;:()")); c != nil && word != "" {
			all = append(all, c)
		}
	}
	return all
}

// command reads the words of a command. One that begins with swagwrap must have its arguments, unless a sentence goes on.
func (r *hintReader) command(name string, ends, full bool) {
	c, from := r.program.Command(name), r.at
	var args []string
	for !ends && r.at < len(r.words) {
		word, last := r.next()
		switch {
		case word == "--help" || word == "--help-all":
			return
		case word == "#" || word == ">":
			r.at = len(r.words)
			ends = true
		case isFlag(word):
			ends = r.flag(word, last, []*cli.Command{c})
			if full && (ends || r.at == len(r.words)) && !r.complete(c, word) {
				r.fault("%s: its value is missing", word)
			}
		case r.isArgument(word):
			args, ends = append(args, word), last
		default:
			r.at--
			return
		}
	}
	if !full {
		return
	}
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.Parse(append([]string{"--"}, args...))
	line := cli.NewContext(r.program, set, nil)
	line.Command = c
	if err := flags.Positionals(line); err != nil {
		r.fault("swagwrap %s: %v", name, err)
	}
	words := []string{"swagwrap", name}
	for to := r.at; from < to; {
		r.at = from
		word, _ := r.next()
		if from = r.at; word == "#" || word == ">" {
			break
		}
		words = append(words, word)
		r.at = to
	}
	if !slices.ContainsFunc(words, standsFor.MatchString) {
		r.ready = append(r.ready, words)
	}
}

// complete reports whether the flag that was read last has its value.
func (r *hintReader) complete(c *cli.Command, word string) bool {
	name := strings.TrimLeft(word, "-")
	i := slices.IndexFunc(flags.TableOf(c), func(row *flags.Row) bool { return slices.Contains(row.Names(), name) })
	return i < 0 || !flags.TableOf(c)[i].TakesValue() || r.words[r.at-1] != word && !strings.HasPrefix(r.words[r.at-1], word)
}

// isArgument reports whether a word is an argument of a command, rather than one of a sentence.
func (r *hintReader) isArgument(word string) bool {
	raw := r.words[r.at-1]
	if raw[0] == '(' {
		return false
	}
	_, err := os.Stat(filepath.Join(r.folder, word))
	return standsFor.MatchString(word) || strings.ContainsAny(raw, `./$*'"|`) || err == nil
}

// flag reads a flag of one of some commands, with its value. It reports whether a command ends behind it.
func (r *hintReader) flag(word string, ends bool, of []*cli.Command) bool {
	name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if name == "help" || name == "help-all" || name == "version" {
		return ends
	}
	var rows []*flags.Row
	var names []string
	for _, c := range of {
		names = append(names, c.Name)
		for _, row := range flags.TableOf(c) {
			if slices.Contains(row.Names(), name) {
				rows = append(rows, row)
			}
		}
	}
	if rows == nil {
		r.fault("%s: no flag of %s", word, cmp.Or(strings.Join(names, ", "), "no command"))
		return ends
	}
	if follows := r.peek(); rows[0].TakesValue() && !has && !ends {
		if follows == "" || isFlag(follows) || slices.Contains(proseWords, follows) {
			return ends
		}
		value, ends = r.next()
		has = true
	}
	if !has || standsFor.MatchString(value) {
		return ends
	}
	for alternative := range strings.SplitSeq(value, "|") {
		var errs []error
		for _, row := range rows {
			row.Apply(flag.NewFlagSet("", flag.ContinueOnError))
			row.Set(alternative)
			errs = append(errs, flags.Table{row}.Check())
		}
		if !slices.Contains(errs, nil) {
			r.fault("%s %s: %v", word, alternative, errs[0])
		}
	}
	return ends
}

// hintCounts counts the hints of all scripts, and the commands of hints that ran.
var hintCounts struct{ seen, run atomic.Int64 }

// checkHints returns what is wrong with the hints of a command. run, if not nil, runs a command that a hint shows, and returns its
// exit code.
func checkHints(args []string, folder, stderr string, run func(words []string) int) (faults []string) {
	failed := ""
	if len(args) > 1 {
		failed = args[1]
	}
	for _, text := range hintLines(stderr) {
		hintCounts.seen.Add(1)
		wrong, ready := readHint(failed, folder, text)
		if wrong == nil && run != nil {
			for _, words := range ready {
				code := run(words)
				if code == 64 {
					wrong = append(wrong, fmt.Sprintf("%q: exit code 64", words))
				}
				if code != notRun {
					hintCounts.run.Add(1)
				}
			}
		}
		for _, fault := range wrong {
			faults = append(faults, fmt.Sprintf("%q says %q: %s", args, text, fault))
		}
	}
	return faults
}

func TestHintCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ failed, stderr, want string }{
		{"score", "error: x\nhint: draw it first: swagwrap sample -o e.safetensors --bn-data TRAIN p.safetensors\n", ""},
		{"score", "hint: swagwrap smaple -o e.safetensors p.safetensors\n", `no command "smaple"`},
		{"score", "hint: first: swagwrap sample --bn-dat TRAIN p.safetensors\n", "--bn-dat: no flag of sample"},
		{"score", "hint: first: swagwrap sample -n many p.safetensors\n", "want 1 to"},
		{"score", "hint: first: swagwrap sample --method\n", "--method: its value is missing"},
		{"score", "hint: more: swagwrap sample -n 30\n", "0 arguments, want POSTERIOR..."},
		{"score", "hint: swagwrap inspect lists the tensors\n", ""},
		{"score", "hint: say at fit what they are: --task classes, or --task regresion\n", "--task regresion:"},
		{"score", "hint: fit --file-order alphabet remembers it\n", "--file-order alphabet:"},
		{"score", "hint: --batch-size N needs less, --provider cpu needs none\n", ""},
		{"score", "hint: leave out --template\n", "--template: no flag of score"},
		{"fit", "next: swagwrap inspect e.onnx\n      swagwrap export -x e.onnx\n", "-x: no flag of export"},
		{"fit", "hint: `sbatch --array=3 …`, or 'swagwrap fit --help'\n", ""},
	} {
		faults := strings.Join(checkHints([]string{"swagwrap", c.failed}, ".", c.stderr, nil), "\n")
		if !strings.Contains(faults, c.want) || (faults == "") != (c.want == "") {
			t.Errorf("%q: %q, want %q", c.stderr, faults, c.want)
		}
	}
	var ran [][]string
	const two = "hint: swagwrap inspect a.onnx, or swagwrap inspect FILE\n"
	wrong := checkHints([]string{"swagwrap", "fit"}, ".", two, func(words []string) int {
		ran = append(ran, words)
		return 64
	})
	if fmt.Sprint(ran) != "[[swagwrap inspect a.onnx]]" || len(wrong) != 1 {
		t.Errorf("ran %q: %q", ran, wrong)
	}
}
