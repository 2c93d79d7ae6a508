package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/guarantee"
)

// A givenFlag is a flag on a command line with its value. A switch has none.
type givenFlag struct {
	flag, value string
	isSwitch    bool
}

func (w givenFlag) args() []string {
	switch {
	case w.isSwitch:
		return []string{"--" + w.flag}
	case strings.HasPrefix(w.value, "-"):
		return []string{"--" + w.flag + "=" + w.value}
	}
	return []string{"--" + w.flag, w.value}
}

// A commandLine is one of the program, without the program's name.
type commandLine struct {
	scene     *scene
	command   string
	words     []givenFlag
	arguments []string
	behind    bool // the flags are behind the arguments
}

func (l *commandLine) args() []string {
	var words []string
	for _, w := range l.words {
		words = append(words, w.args()...)
	}
	if l.behind {
		return slices.Concat([]string{l.command}, l.arguments, words)
	}
	return slices.Concat([]string{l.command}, words, l.arguments)
}

func (l *commandLine) String() string {
	return console.Shell(append([]string{"swagwrap"}, l.args()...)...)
}

func (l *commandLine) has(flag string) bool {
	return slices.ContainsFunc(l.words, func(w givenFlag) bool { return w.flag == flag })
}

// value returns the last value of a flag, or "".
func (l *commandLine) value(flag string) (value string) {
	for _, w := range l.words {
		if w.flag == flag {
			value = w.value
		}
	}
	return value
}

// without returns the line without some flags.
func (l *commandLine) without(left func(flag string) bool) *commandLine {
	other := *l
	other.words = slices.DeleteFunc(slices.Clone(l.words), func(w givenFlag) bool { return left(w.flag) })
	return &other
}

// with returns the line with another value of a flag.
func (l *commandLine) with(flag, value string) *commandLine {
	other := l.without(func(name string) bool { return name == flag })
	other.words = append(other.words, givenFlag{flag: flag, value: value})
	return other
}

// A flagPair is two flags of a command in the order of the alphabet.
type flagPair struct{ command, a, b string }

// A drawer draws command lines. It prefers pairs of flags that it has not drawn yet. One seed gives one sequence of lines.
type drawer struct {
	*rand.Rand
	commands []*cli.Command
	drawn    map[flagPair]int
}

func newDrawer(seed uint64) *drawer {
	env := &console.Env{Stdout: console.NewStdout(io.Discard), Stderr: io.Discard}
	d := &drawer{rand.New(rand.NewPCG(seed, 49)), newApp(env, func() {}).cli().Commands, map[flagPair]int{}}
	for _, c := range d.commands {
		for i, f := range c.Flags {
			for _, g := range c.Flags[:i] {
				d.drawn[pairOf(c.Name, f.Names()[0], g.Names()[0])] = 0
			}
		}
	}
	return d
}

func pairOf(command, a, b string) flagPair { return flagPair{command, min(a, b), max(a, b)} }

// missing returns the flags of commands that have no values.
func (d *drawer) missing() (names []string) {
	for _, c := range d.commands {
		for _, f := range c.Flags {
			_, _, known := scenes[0].values(c.Name, f.Names()[0])
			if _, output := lookup(outputFlags, c.Name, f.Names()[0]); !known && !output && !isSwitch(f) {
				names = append(names, c.Name+" --"+f.Names()[0])
			}
		}
	}
	return names
}

func isSwitch(f cli.Flag) bool { return !f.(*flags.Row).TakesValue() }

// pick returns one of the values.
func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// next draws a line. Most lines have only values that fit. The others have one that does not. An error must not depend on what else is
// on the line.
func (d *drawer) next() *commandLine {
	c := d.command()
	l := &commandLine{scene: pick(d.Rand, scenes), command: c.Name, behind: d.IntN(4) == 0}
	l.arguments = d.arguments(l)
	usable := c.Flags
	rude := d.IntN(10) < 3
	if !rude {
		usable = slices.DeleteFunc(slices.Clone(c.Flags), func(f cli.Flag) bool { return !d.fits(l, f) })
	}
	chosen := d.flags(c.Name, usable, 2+d.IntN(4))
	odd, wild := -1, rude && d.IntN(4) == 0 // wild: any may be odd
	if rude {
		odd = d.IntN(len(chosen) + 1)
	}
	for i, f := range chosen {
		l.words = append(l.words, d.word(l, f, i == odd || wild && d.IntN(2) == 0))
	}
	if odd == len(chosen) && len(l.arguments) > 0 {
		l.arguments[d.IntN(len(l.arguments))] = pick(d.Rand, oddArguments)
	}
	d.needed(l)
	d.placeOutputs(l, odd >= 0)
	d.Shuffle(len(l.words), func(i, j int) { l.words[i], l.words[j] = l.words[j], l.words[i] })
	for i, w := range l.words {
		for _, v := range l.words[:i] {
			if p := pairOf(l.command, v.flag, w.flag); v.flag != w.flag {
				d.drawn[p]++
			}
		}
	}
	return l
}

var oddArguments = []string{
	"missing.npz", "mine/x.npz", "mine", "out", "classes/p.safetensors", "classes/e.safetensors", "words/e.safetensors", "pixels/p.safetensors", "words/text.txt", "table/test.csv", "classes/test.npz", "mine/x.txt",
	"classes/rows.csv", "old/store", "old/result", "classes/parts.csv.part-0000-of-0002", "old/x.onnx", "-", "", "classes/*.npz", "classes/1.onnx",
}

// command draws a command. Commands with more undrawn pairs of flags come more often.
func (d *drawer) command() *cli.Command {
	left := map[string]int{}
	for p, n := range d.drawn {
		if n == 0 {
			left[p.command]++
		}
	}
	var bag []*cli.Command
	for _, c := range d.commands {
		share := 1 + left[c.Name]/20 + len(c.Flags)/4
		if c.Name == "try" {
			share = share/4 + 1 // it takes as long as four others
		}
		bag = append(bag, slices.Repeat([]*cli.Command{c}, share)...)
	}
	return pick(d.Rand, bag)
}

// fits reports whether a flag has a value that fits the scene.
func (d *drawer) fits(l *commandLine, f cli.Flag) bool {
	name := f.Names()[0]
	if _, ok := lookup(outputFlags, l.command, name); ok || isSwitch(f) {
		_, limited := l.scene.good[name]
		return name != "maps" || limited
	}
	good, _, _ := l.scene.values(l.command, name)
	return len(good) > 0
}

// flags draws n of the flags. The first two are the pair that was drawn least. Each other one adds such pairs.
func (d *drawer) flags(command string, of []cli.Flag, n int) []cli.Flag {
	of = slices.Clone(of)
	d.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	if len(of) <= 2 {
		return of
	}
	name := func(i int) string { return of[i].Names()[0] }
	best, least := [2]int{0, 1}, -1
	for i := range of {
		for j := range i {
			if n := d.drawn[pairOf(command, name(i), name(j))]; least < 0 || n < least {
				best, least = [2]int{j, i}, n
			}
		}
	}
	chosen := []cli.Flag{of[best[0]], of[best[1]]}
	for _, f := range of {
		new := 0
		for _, g := range chosen {
			if d.drawn[pairOf(command, f.Names()[0], g.Names()[0])] <= least {
				new++
			}
		}
		if len(chosen) < n && !slices.Contains(chosen, f) && (new > 0 || d.IntN(8) == 0) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}

// word draws the value of a flag. Values of outputs are drawn later.
func (d *drawer) word(l *commandLine, f cli.Flag, odd bool) givenFlag {
	w := givenFlag{flag: f.Names()[0], isSwitch: isSwitch(f)}
	if w.isSwitch {
		return w
	}
	good, wrong, _ := l.scene.values(l.command, w.flag)
	switch {
	case len(good) == 0 && len(wrong) == 0:
	case len(good) == 0 || odd && len(wrong) > 0:
		w.value = pick(d.Rand, wrong)
	default:
		w.value = pick(d.Rand, good)
	}
	return w
}

// needed adds the flags without which the command would be refused, or would take long.
func (d *drawer) needed(l *commandLine) {
	add := func(flag, value string) {
		if !l.has(flag) {
			l.words = append(l.words, givenFlag{flag: flag, value: value})
		}
	}
	switch l.command {
	case "fit", "try":
		for i := 0; i < len(l.scene.fit); i += 2 {
			add(l.scene.fit[i][2:], l.scene.fit[i+1])
		}
	case "geometry":
		add("points", "3")
	case "calibrate":
		if l.has("by") || l.has("set") {
			add("coverage", "70%")
		}
		if by := l.value("by"); by != "" && by != guarantee.ByClass && len(l.arguments) > 0 { // groups need paths
			l.arguments[0] = l.scene.probs()
		}
	case "sweep":
		add("scale", "0.5")
		add("rank", "0")
	}
	for _, flag := range d.known(l.command) {
		switch {
		case flag == "methods":
			add(flag, "sgd,swa,swag")
		case flag == "output":
			add(flag, "")
		case flag == "bn-data" && l.scene.training != nil && (l.command != "export" || strings.Contains(strings.Join(l.arguments, " "), "/p")):
			add(flag, l.scene.training[0])
		case flag == "members" && l.command != "export":
			add(flag, "2")
		case flag == "store" && l.has("part"):
			add(flag, "")
		}
	}
}

func (d *drawer) known(command string) (names []string) {
	for _, c := range d.commands {
		if c.Name == command {
			for _, f := range c.Flags {
				names = append(names, f.Names()[0])
			}
		}
	}
	return names
}

// arguments draws what stands behind the flags.
func (d *drawer) arguments(l *commandLine) []string {
	s, p, e := l.scene, l.scene.at("p.safetensors"), l.scene.at("e.safetensors")
	data, more := pick(d.Rand, s.data), []string{p}
	if len(s.few) > 0 && d.IntN(8) == 0 {
		data = pick(d.Rand, s.few)
	}
	if d.IntN(5) == 0 {
		more = append(more, s.at("p1.safetensors"))
	}
	if s.name == "classes" && d.IntN(2) == 0 {
		e = pick(d.Rand, []string{"classes/settled.safetensors", "classes/calibrated.safetensors", "classes/six.safetensors"})
	}
	parts := s.at("parts.csv")
	if len(s.guarantees) > 0 && d.IntN(3) == 0 {
		k := d.IntN(len(s.guarantees))
		e, parts = s.guaranteed(k), s.at(fmt.Sprintf("promised%d.csv", k))
	}
	switch l.command {
	case "inspect":
		return []string{pick(d.Rand, append(slices.Clone(s.networks()), p, e, data, s.at("rows.csv"), s.at("rows.npz"), s.at("parts.csv.part-0001-of-0002"), "old/store", "old/x.onnx", "old/list.parquet", "old/x.json", "classes/settings.json"))}
	case "fit":
		return slices.Clone(s.networks())
	case "sample":
		return more
	case "export":
		return []string{pick(d.Rand, []string{p, e})}
	case "list":
		return []string{pick(d.Rand, []string{"shared/pictures", "classes/pictures", "classes/pictures.tar", "classes/list.csv", "classes/listed.parquet", "shared/pictures/*.png"})}
	case "score", "settle":
		return []string{e, data}
	case "prepare":
		return []string{oldFiles + "/x.onnx", data}
	case "merge":
		return []string{parts + ".part-0000-of-0002", parts + ".part-0001-of-0002"}
	case "compare":
		return append(more, data)
	case "ood":
		if d.IntN(4) == 0 {
			return []string{s.at("rows.npz"), s.at("rows.npz")}
		}
		return append(more, data, s.other)
	case "calibrate":
		return []string{pick(d.Rand, []string{s.at("rows.npz"), s.probs()})}
	case "sweep", "geometry":
		return []string{p, data}
	case "try":
		return append(slices.Clone(s.networks()), data)
	case "completion":
		return []string{pick(d.Rand, []string{"bash", "zsh", "fish"})}
	}
	return nil
}

// placeOutputs draws where outputs go. In odd lines an output may be a file of the user's, an input, or another output.
func (d *drawer) placeOutputs(l *commandLine, odd bool) {
	for i := range l.words {
		w := &l.words[i]
		ends, isOutput := lookup(outputFlags, l.command, w.flag)
		if !isOutput {
			continue
		}
		end := pick(d.Rand, ends)
		if good := l.scene.good[w.flag]; w.flag == "maps" && good != nil {
			w.value = pick(d.Rand, good)
		} else {
			w.value = strings.TrimSuffix(newFiles+"/"+w.flag+end, "/")
		}
		switch {
		case odd && l.has("force") && d.IntN(4) == 0:
			w.value = strings.TrimSuffix(foreignFiles+"/x"+end, "/")
		case odd && d.IntN(3) == 0:
			w.value = d.oddOutput(l, w.flag, end)
		case l.has("resume") && w.flag == "output" && !odd && d.IntN(2) == 0: // a run that is complete
			l.arguments, w.value = []string{l.scene.at("e.safetensors"), l.scene.data[0]}, l.scene.at("rows.csv")
			if l.has("montage") && l.scene.name == "classes" {
				w.value = oldFiles + "/y.csv"
			}
		case l.has("force") && d.IntN(2) == 0, w.flag == "store" && d.IntN(4) == 0:
			w.value = oldOutput(l.command, w.flag, end)
		case w.flag == "output" && !slices.Contains([]string{"try", "merge"}, l.command) && d.IntN(12) == 0:
			w.value = "-"
		}
	}
}

// oldOutput returns the output of an earlier run.
func oldOutput(command, flag, end string) string {
	switch {
	case flag == "plots" || flag == "maps" || flag == "store":
		return oldFiles + "/" + flag
	case flag == "save":
		return oldFiles + "/saved" + end
	case flag == "montage":
		return oldFiles + "/montage.html"
	case command == "list":
		return oldFiles + "/list.parquet"
	case command == "try" && flag == "output":
		return oldFiles + "/result"
	}
	return oldFiles + "/x" + end
}

// oddOutput returns a place where an output must not go, or may go only with another flag.
func (d *drawer) oddOutput(l *commandLine, flag, end string) string {
	places := []string{oldOutput(l.command, flag, end), foreignFiles + "/x" + strings.TrimSuffix(end, "/"), foreignFiles, "missing/x" + end, newFiles, newFiles + "/x.odd", newFiles + "/x", "mine/link.csv", "-", "shared/pictures", "pixels/masks", "pixels/pictures"}
	for _, w := range l.words {
		if w.value != "" && w.flag != flag {
			places = append(places, w.value)
		}
	}
	return pick(d.Rand, append(places, append(l.arguments, l.arguments...)...))
}

// outputsOf returns what the command makes if it succeeds: files, and folders with something in them.
func (l *commandLine) outputsOf() (files, folders []string) {
	for _, w := range l.words {
		ends, isOutput := lookup(outputFlags, l.command, w.flag)
		switch {
		case !isOutput || w.value == "" || w.flag == "output" && file.IsStdout(w.value):
		case ends[0] == "/":
			folders = append(folders, filepath.Clean(strings.TrimPrefix(w.value, "npy=")))
		default:
			files = append(files, filepath.Clean(w.value))
		}
	}
	return files, folders
}
