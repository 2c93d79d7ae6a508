package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/fixtures/mnist"
	"github.com/swagwrap/swagwrap/internal/dataset/table"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/hub"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/kind"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/swag/trajectory"
)

// notInTry are flags of fit and compare that try sets itself, or that belong to other work than a first trial.
var notInTry = []string{"output", "force", "report", "plots", "json", "part", "extend", "no-graph", "quiet", "verbose", "each-run"}

func tryCommand(a *app) *command {
	o := &tryOptions{app: a}
	return &command{
		name:  "try",
		usage: "do everything at once: from checkpoints to a report and a model to deploy",
		args:  "[CKPT...] [TEST]",
		description: `Builds the posterior, compares the methods on labelled TEST data, and makes the network or ensemble that the comparison
recommends. All results are in one folder, with an ONNX model and NEXT.md, which says what to do with them.

   swagwrap try --bn-data train.npz --val val.npz checkpoints test.npz
   swagwrap try -o result --template model.onnx --bn-data batches.npy checkpoints photos/test

   swagwrap try --sample

--sample runs it on files that the program brings: checkpoints of a small network, and pictures of digits.

try looks for what you do not give. It looks next to the checkpoints for the exported graph, saved training batches and
preprocessing. It takes classes from the names of folders, and the task from the labels. It prints what it found, and
with -v each command before it runs.

The folder appears when everything is done. If the model cannot be made, the folder has the results up to there, NEXT.md says
why, and the exit code is that of the failure. Before the comparison has its figures, a failure leaves no folder.
--force replaces the results of an earlier try when everything is done. Incomplete results are then in FOLDER-incomplete. It refuses a folder with other files.

Without --val, temperatures are fitted on one half of TEST and applied to the other half.`,
		Table: o.rows(),
		run: func(ctx context.Context, args []string) error {
			o.args = args
			return o.try(ctx)
		},
	}
}

// tryOptions are the values of try's command line. Most of its flags are those of the commands that it runs, which read them.
type tryOptions struct {
	*app
	flags.Table
	args   []string
	sample bool
	output flags.OutputOptions
}

func (o *tryOptions) rows() flags.Table {
	o.Table = flags.Table{
		flags.Text(flags.Row{
			Name:    "output",
			Short:   "o",
			Usage:   "write all results to `FOLDER`",
			Default: "swagwrap-result",
		}, &o.output.Path),
		flags.Bool(flags.Row{Name: "force", Usage: "replace the results of an earlier try in the folder"}, &o.output.Force),
		flags.Bool(flags.Row{Name: "sample", Usage: "run on sample files, which are written to the folder too"}, &o.sample),
	}
	taken := map[string]bool{}
	for _, name := range append([]string{"sample"}, notInTry...) {
		taken[name] = true
	}
	for _, r := range flags.Join(new(fitOptions).rows(), new(compareOptions).rows()) {
		if !taken[r.Name] {
			r.Then, taken[r.Name] = nil, true // the command itself completes its options
			o.Table = append(o.Table, r)
		}
	}
	return o.Table
}

// A trial is one run of try. Its commands work in a new folder, which takes its name at the end. Lines that the user sees
// and files call it by that name.
type trial struct {
	*tryOptions
	ctx         context.Context // of the one run
	folder      *console.Folder
	fitting     *fitOptions // of what the user gave
	comparison  *compareOptions
	checkpoints []string
	test        string
	ran         [][]string                            // the commands
	notes       []string                              // warnings of the commands, each once
	leftOut     []string                              // further messages, each once, for notes.txt alone
	result      *study.Document                       // of compare
	failed      error                                 // why results are missing, or nil
	refit       func(found, flag, value string) error // see [console.Env]
	chosen      bool                                  // validation data chose the checkpoints
	predicts    string                                // the call of Python for predictions
}

func (o *tryOptions) try(ctx context.Context) error {
	args := o.args
	switch {
	case o.sample && len(args) > 0:
		return console.Usagef("leave out --sample, or the files", "--sample: it brings its own checkpoints and test data")
	case !o.sample && len(args) < 2:
		return console.Usagef("swagwrap try CHECKPOINTS TEST, where TEST is labelled data\nswagwrap try --sample shows it on files "+
			"that the program brings", "%s, want checkpoints and test data", report.Plural(len(args), "argument"))
	}
	t := &trial{tryOptions: o, ctx: ctx}
	if err := t.read(); err != nil {
		return err
	}
	for _, path := range append(slices.Clone(args), t.inputs()...) {
		if _, err := os.Stat(path); path != "" && err != nil {
			return console.BadInput(file.Error(path, err))
		}
	}
	if err := testIsLast(args); err != nil {
		return err
	}
	var err error
	if t.folder, err = console.CreateFolder(o.output.Path, o.output.Force); err != nil {
		return err
	}
	defer func() { t.folder.Abort() }()
	if err := t.refuseInside(); err != nil {
		return err
	}
	if o.sample {
		if args, err = t.writeSample(); err != nil {
			return err
		}
	}
	t.checkpoints, t.test = args[:len(args)-1], args[len(args)-1]
	if err := t.comparison.check(); err != nil {
		return err
	}
	defer func() { t.tell(math.MaxInt) }() // of a failure, whole
	t.failed = t.compare()
	if t.result == nil {
		return t.failed
	}
	if err := t.writeFigures(); err != nil {
		return err
	}
	if err := t.deploy(); t.failed == nil {
		t.failed = err
	}
	if t.failed != nil {
		if ctx.Err() != nil {
			return t.failed
		}
		if err := t.aside(); err != nil {
			return err
		}
	}
	for _, step := range []func() error{t.writeFigures, t.write, t.folder.Commit} {
		if err := step(); err != nil {
			return err
		}
	}
	what := "NEXT.md (read it first), report.html, table.txt and ensemble.onnx"
	switch {
	case t.failed != nil:
		what = "the results up to the failure: read " + t.named("NEXT.md") + " first"
	case len(t.result.Next) == 0:
		what = "NEXT.md (read it first), report.html and table.txt, and no model, since nothing is recommended"
	}
	t.tell(mostNotes)
	o.Logf("%s has %s", t.folder.Path, what)
	if t.failed != nil {
		return t.failed
	}
	if made := t.made(t.result); made != "" {
		o.Logf("score new data: %s", console.Shell(o.Program, "score", "-o", "predictions.csv", made, "NEW-DATA"))
		o.Logf("in Python:      swagwrap.load(%q).%s", t.named("ensemble.onnx"), t.predicts)
	}
	if o.sample {
		o.Logf("now your own checkpoints: %s", console.Shell(o.Program, "try", "CHECKPOINTS", "TEST-DATA"))
	}
	return nil
}

// once returns what keeps messages in a list, each once: several commands read the same data, and say the same of it.
func once(list *[]string) func(message string) {
	return func(message string) {
		if !slices.Contains(*list, message) {
			*list = append(*list, message)
		}
	}
}

// mostNotes is the largest number of lines of notes on the screen.
const mostNotes = 6

// tell prints the warnings, once. At most the first few lines are shown, and notes.txt has all.
func (t *trial) tell(left int) {
	for i, note := range t.notes {
		lines := t.Messages().Hang("warning: ", file.Named(note))
		if !t.Verbose && i > 0 && (len(lines) > left || len(lines) == left && i+1 < len(t.notes)) {
			t.Logf("%s more: %s", report.Plural(len(t.notes)-i, "warning"), t.named(notesFile))
			break
		}
		for _, line := range lines {
			t.Logf("%s", line)
		}
		left -= len(lines)
	}
	t.notes = nil
}

const notesFile, tableFile = "notes.txt", "table.txt"

// testIsLast refuses checkpoints and other files of networks in the place of the test data.
func testIsLast(args []string) error {
	if len(args) < 2 {
		return nil
	}
	test := args[len(args)-1]
	if of := kind.Detect(test); of == kind.Model || of == kind.Posterior || of == kind.Ensemble {
		return console.Usagef("swagwrap try CHECKPOINTS TEST, where TEST is labelled data", "%s: %s, want test data", test, of)
	}
	if !open.HasCheckpoints(test) {
		return nil
	}
	if others := args[:len(args)-1]; !slices.ContainsFunc(others, open.HasCheckpoints) {
		return console.Usagef(console.Shell(slices.Concat([]string{"swagwrap", "try", test}, others)...),
			"%s has no checkpoints, but %s has: the test data come last", args[0], test)
	}
	return console.Usagef("swagwrap try CHECKPOINTS TEST, where TEST is labelled data", "%s has checkpoints, want test data", test)
}

// read reads what the user gave as the options of fit and compare.
func (t *trial) read() error {
	t.fitting, t.comparison = new(fitOptions), new(compareOptions)
	table := t.fitting.rows()
	if _, err := table.Parse(t.those(table)); err != nil {
		return err
	}
	t.comparison.rows()
	_, err := t.comparison.Parse(t.ofComparison())
	return err
}

// inputs returns the files that flags name.
func (t *trial) inputs() []string {
	return []string{t.comparison.BatchNorm.Data, t.comparison.Validation, open.Graph(t.fitting.files.Source.Template)}
}

// refuseInside refuses files in the folder: the old ones would be gone, and new ones would not be there yet. Any word of a flag may
// be a path.
func (t *trial) refuseInside() error {
	all := slices.Concat(t.args, t.inputs())
	for _, r := range t.Table {
		if slices.Contains(notInTry, r.Name) || !namesPath.MatchString(r.Usage) {
			continue
		}
		for _, arg := range t.Words(r.Name) {
			_, after, _ := strings.Cut(arg, "=")
			for _, path := range append(strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" ,=", r) }), arg, after) {
				if strings.Contains(path, "/") { // what has none may be a word, such as none
					all = append(all, path)
				}
			}
		}
	}
	for _, path := range all {
		if path != "" && t.folder.Contains(path) {
			return console.Usagef("move it to another place, or -o FOLDER takes another folder",
				"%s: lies in %s, which this command makes anew", path, t.folder.Path)
		}
	}
	return nil
}

// namesPath finds flags whose value may name a file.
var namesPath = regexp.MustCompile("`[^`]*(FILE|FOLDER|PATH|SPEC)[^`]*`")

// writeSample writes the sample files to the folder, and sets the flags for them. It returns the checkpoints and the test
// data.
func (t *trial) writeSample() (args []string, err error) {
	if err := os.CopyFS(t.at("sample"), mnist.Files); err != nil {
		return nil, console.BadOutput(err)
	}
	at := func(name string) string { return filepath.Join(t.at("sample"), name) }
	for name, value := range map[string]string{
		"preprocess": "mean=0.1307 std=0.3081",
		"augment":    "none",
		"template":   at("model.onnx"),
		"bn-data":    at("train.npz"),
		"val":        at("val.npz"),
	} {
		t.Row(name).Set(value)
	}
	t.Logf("a sample, not your data: a small network for digits, in %s", t.named("sample"))
	return []string{at("states"), at("test.npz")}, t.read()
}

// at returns the path of a result while the trial works, and named its path at the end.
func (t *trial) at(name string) string    { return filepath.Join(t.folder.Work, name) }
func (t *trial) named(name string) string { return filepath.Join(t.folder.Path, name) }

// compare fits the posterior and compares the methods.
func (t *trial) compare() error {
	card, data := &t.fitting.files.Card, &t.comparison.Data
	found := open.Find(open.FindOptions{
		Checkpoints: t.checkpoints,
		Test:        t.test,
		Training:    t.comparison.BatchNorm.Data,
		Validation:  t.comparison.Validation,
		Template:    open.Graph(t.fitting.files.Source.Template),
		Unused:      t.fitting.files.Source.Unused,
		Task:        card.Task,
		Targets:     t.Is("targets"),
		Card:        card.File,
		ClassNames:  card.ClassNames,
		Preprocess:  card.Preprocess,
		Output:      card.Output,
		Columns:     card.Columns,
		LabelsAs:    data.LabelsAs,
		Named:       data.Named,
		Labels:      data.Labels.Main,
	})
	for _, reason := range found.Reasons {
		t.Logf("found %s", reason)
	}
	if found.Unclear != nil {
		return console.BadInput(found.Unclear)
	}
	if found.Unreadable != nil { // fit would ask for the task
		return found.Unreadable
	}
	posterior := t.at("posterior.safetensors")
	words := []string{"fit", "-o", posterior}
	fit := slices.Concat(words, foundWords(found), t.those(t.fitting.Table))
	if err := t.step(append(fit, t.checkpoints...)); err != nil {
		return err
	}
	last, err := t.settled(posterior, fit)
	if err != nil {
		return err
	}
	words = []string{"compare", "--report", t.at("report.html")}
	if found.Training != "" {
		words = append(words, "--bn-data", found.Training)
	}
	of := append(t.ofComparison(), posterior, t.test)
	prefers, refit := []string(nil), errors.New("validation data prefer other checkpoints")
	if !t.Is("last") && !t.Is("mean") {
		t.refit = func(found, flag, value string) error {
			prefers = []string{"--" + flag, value}
			t.Logf("%s They are taken (%s)", found, console.Shell(prefers...))
			return refit
		}
	}
	err = t.step(slices.Concat(words, of))
	if t.refit = nil; !errors.Is(err, refit) {
		return err
	}
	if prefers[0] != lastFlag {
		prefers = append(last, prefers...)
	}
	if err := t.again(posterior, fit, prefers); err != nil {
		return err
	}
	t.chosen = true
	return t.step(slices.Concat(words, of))
}

// lastFlag is the flag of fit for the last checkpoints.
const lastFlag = "--last"

// settled fits again without the checkpoints on the way to the others, if there are some and the user did not choose. It returns the
// flags that leave them out.
func (t *trial) settled(posterior string, fit []string) (last []string, err error) {
	p, err := swag.Open(posterior)
	if err != nil {
		return nil, err
	}
	h, err := trajectory.Check(p)
	p.Close()
	if all := h.Checkpoints; err == nil && h.Last() < all && !t.Is("last") && !t.Is("extend") {
		t.Logf("the first %d of %d checkpoints are left out, since the weights still go in one direction there (%s %d takes all)",
			all-h.Last(), all, lastFlag, all)
		last = []string{lastFlag, strconv.Itoa(h.Last())}
		return last, t.again(posterior, fit, last)
	}
	return nil, console.BadInput(err)
}

// again fits another posterior in the place of the first one.
func (t *trial) again(posterior string, fit, flags []string) error {
	if err := os.Remove(posterior); err != nil {
		return console.BadOutput(err)
	}
	t.ran = nil
	return t.step(slices.Concat(fit, flags, t.checkpoints))
}

// ofComparison returns the flags of compare that the user gave. The posterior has what flags of fit say.
func (t *trial) ofComparison() []string { return t.those(t.notFit(t.comparison.Table)) }

// notFit returns the flags that fit does not have, and those that say how to compute.
func (t *trial) notFit(of flags.Table) flags.Table {
	computing := computing()
	return slices.DeleteFunc(slices.Clone(of), func(r *flags.Row) bool {
		return t.fitting.Row(r.Name) != nil && computing.Row(r.Name) == nil
	})
}

// foundWords returns the flags of fit that say what was found.
func foundWords(f *open.Found) (words []string) {
	head := ""
	if f.Head != "" {
		head = "head=" + f.Head
	}
	for _, w := range [][2]string{
		{"--template", f.Template},
		{"--card", f.Card},
		{"--class-names", f.ClassNames},
		{"--task", f.Task},
		{"--targets", head},
		{"--preprocess", f.Preprocess},
		{"--output-name", f.Output},
	} {
		if w[1] != "" {
			words = append(words, w[:]...)
		}
	}
	for _, input := range slices.Sorted(maps.Keys(f.Columns)) {
		columns := table.Join(f.Columns[input])
		if len(f.Columns) > 1 || strings.Contains(columns, "=") {
			columns = input + "=" + columns
		}
		words = append(words, "--columns", columns)
	}
	return words
}

// deploy makes what the comparison recommends.
func (t *trial) deploy() error {
	if err := os.Mkdir(t.at(between), 0o777); err != nil {
		return console.BadOutput(err)
	}
	defer os.Remove(t.at(between)) // if it is empty
	for _, next := range t.result.Next {
		if d, ok := next.(study.Score); ok && d.Data == "" {
			d.Data = t.test
			next = d
			t.Logf("without --val, the deployed temperature is fitted on all of %s; the table used one half for the other", t.test)
		}
		words := t.comparison.spelling.Words(t.now(next))
		var more []string
		for _, r := range computing() {
			if !slices.Contains(words, "--"+r.Name) && t.app.command(words[0]).Row(r.Name) != nil {
				more = append(more, t.Words(r.Name)...)
			}
		}
		if e, ok := next.(study.Export); ok && !e.First {
			more = append(more, "--figures", t.at(figuresFile))
		}
		done := t.ran
		err := t.step(slices.Concat(words[:1], more, words[1:]))
		if errors.Is(err, hub.ErrOther) {
			more, t.ran = more[:len(more)-2], done
			err = t.step(slices.Concat(words[:1], more, words[1:]))
		}
		if errors.As(err, new(*infer.MadeUpError)) {
			t.Logf("%v: now on the test data", err)
			t.ran = done
			err = t.step(slices.Concat(words[:1], more, []string{"--check", t.test}, t.reading(), words[1:]))
		}
		if err != nil {
			t.ran = done // what commands.sh repeats
			return err
		}
	}
	return nil
}

// now returns a step that reads files of the folder where they are while the trial works. A study calls data by the names
// that they take at the end.
func (t *trial) now(step study.Step) study.Step {
	at := func(path string) string {
		if name, ok := strings.CutPrefix(path, t.folder.Path+"/"); ok {
			return t.at(name)
		}
		return path
	}
	switch d := step.(type) {
	case study.Sample:
		d.Training, d.Target = at(d.Training), at(d.Target)
		return d
	case study.Score:
		d.Data = at(d.Data)
		return d
	}
	return step
}

// step prints the words of a command, and runs it.
func (t *trial) step(words []string) error {
	t.ran = append(t.ran, slices.Clone(words))
	if t.Verbose || len(t.ran) == 2 {
		t.Logf("")
	}
	t.Debugf("step %d: %s", len(t.ran), console.Shell(append([]string{t.Program}, namedAll(words)...)...))
	env := *t.Env
	env.Shown = func(r *study.Document) { t.result = r }
	env.Do, env.Refit, env.Chosen = t.score, t.refit, t.chosen
	env.Warned, env.LeftOut, env.Rest, env.Between = once(&t.notes), once(&t.leftOut), t.named(tableFile), between
	env.Brief = len(t.ran) > 1 // fit has printed what it found
	if len(t.ran) > 2 {        // compare has printed all there is
		env.Stdout = console.NewStdout(io.Discard)
	}
	a := newApp(&env, func() {})
	a.Computes = t.comparison.Runtime
	c := a.command(words[0])
	env.Usage = c.name + " " + c.args
	file.Forget()
	if words = words[1:]; t.output.Force {
		words = append([]string{"--force"}, words...)
	}
	args, err := c.Parse(words)
	if err == nil {
		err = c.run(t.ctx, args)
	}
	return env.Opened(err)
}

// namedAll returns the words, with the paths that files take at the end.
func namedAll(words []string) (named []string) {
	for _, word := range words {
		named = append(named, file.Named(word))
	}
	return named
}

// computing has the flags that say how a command computes.
func computing() flags.Table { return flags.Run(new(open.RuntimeOptions), new(open.DataOptions)) }

// those returns those of the flags that the user gave to try.
func (t *trial) those(of flags.Table) (words []string) {
	for _, r := range of {
		if !slices.Contains(notInTry, r.Name) {
			words = append(words, t.Words(r.Name)...)
		}
	}
	return words
}

// aside gives incomplete results a folder of their own, if those of an earlier try would be lost.
func (t *trial) aside() error {
	if !t.folder.Replaces() {
		return nil
	}
	to, err := console.CreateFolder(t.folder.Path+"-incomplete", true)
	if err != nil {
		return err
	}
	from := t.folder
	defer from.Abort()
	t.folder = to
	file.Name(from.Work, to.Path)
	entries, err := os.ReadDir(from.Work)
	for _, e := range entries {
		if err == nil {
			err = os.Rename(filepath.Join(from.Work, e.Name()), t.at(e.Name()))
		}
	}
	return console.BadOutput(err)
}

// between is the folder for the files between the commands.
const between = "steps"

// figuresFile has the figures as JSON, which export takes.
const figuresFile = "figures.json"

// writeFigures writes the figures as JSON. After the export, which needs them, the names in them may be others: see aside.
func (t *trial) writeFigures() error {
	file.Forget() // that the export read it
	if err := os.Remove(t.at(figuresFile)); err != nil && !os.IsNotExist(err) {
		return console.BadOutput(err)
	}
	var figures strings.Builder
	if err := console.WriteJSON(&figures, t.result.JSON); err != nil {
		return err
	}
	return t.put(map[string]string{figuresFile: file.Named(figures.String())})
}

// write writes the table, the notes, NEXT.md and commands.sh.
func (t *trial) write() error {
	next, err := t.next()
	if err != nil {
		return err
	}
	var all strings.Builder
	study.WriteText(&all, report.Screen{Verbose: true}, t.result.BatchNorm.Warnings(), t.result) // writing to memory cannot fail
	texts := map[string]string{
		tableFile:     all.String(),
		"NEXT.md":     next,
		"commands.sh": t.script(),
	}
	if notes := slices.Concat(t.notes, t.leftOut); notes != nil {
		texts[notesFile] = file.Named(strings.Join(notes, "\n\n")) + "\n"
	}
	return t.put(texts)
}

// put writes texts to files, by name.
func (t *trial) put(texts map[string]string) error {
	var outs []*console.Output
	for name, text := range texts {
		out, err := console.CreateOutput(t.at(name), false)
		if err != nil {
			return err
		}
		defer out.Abort()
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
		outs = append(outs, out)
	}
	return console.Commit(outs...)
}

// here returns a shell line that changes to the folder where try runs. After it, the paths that the user gave are right.
func here() string {
	dir, err := os.Getwd()
	if err != nil {
		return "# paths are those of the folder where try ran"
	}
	return console.Shell("cd", dir)
}

// script returns the text of commands.sh. It writes to a new folder, so it can be run at any time and replaces nothing.
func (t *trial) script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# The commands that made %s. They make its files again in a new folder, and name it. Nothing else "+
		"changes.\nset -e\n%s\n", comment(t.folder.Path), here())
	fmt.Fprintf(&b, "new=$(mktemp -d %s)\n", console.Shell(t.folder.Path+"-again-XXXXXX"))
	for _, args := range t.ran {
		if args[0] == "compare" {
			args = slices.Insert(slices.Clone(args), 1, "--json")
		}
		words := []string{console.Shell(t.Self()...)}
		for _, arg := range namedAll(args) {
			if name, ok := t.makes(arg); ok {
				words = append(words, `"$new"/`+console.Shell(name))
			} else {
				words = append(words, console.Shell(arg))
			}
		}
		line := strings.Join(words, " ")
		if args[0] == "compare" {
			line += fmt.Sprintf(" > \"$new\"/%s\nmkdir \"$new\"/%s", figuresFile, between)
		}
		fmt.Fprintln(&b, line)
	}
	b.WriteString("echo \"the files are in $new\"\n")
	return b.String()
}

// comment returns a path for the comment of a script. A line feed would end the comment.
func comment(path string) string {
	if strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}

// makes reports whether a word of a command is the path of a file that the commands make, and returns its name.
func (t *trial) makes(word string) (name string, ok bool) {
	if word != "" && (word == t.comparison.save || word == t.comparison.Tune) {
		return filepath.Base(word), true
	}
	name, ok = strings.CutPrefix(word, t.folder.Path+"/")
	return name, ok && !strings.HasPrefix(name, "sample/") // the program itself brings the files in sample/
}

// made returns the recommended network or ensemble, or "".
func (t *trial) made(r *study.Document) (path string) {
	for _, step := range r.Next {
		switch d := step.(type) {
		case study.Sample:
			path = d.Output
		case study.Calibrate:
			path = d.Output
		}
	}
	return path
}

func (t *trial) reading() []string {
	return t.those(t.notFit(flags.Data(new(open.DataOptions), new(open.NetworkOptions))))
}

// score returns the lines that score the test data with the recommended network or ensemble, or none if nothing can be
// deployed. They run in any folder.
func (t *trial) score(r *study.Document) []string {
	made := t.made(r)
	if made == "" {
		return nil
	}
	reading := t.reading()
	if labels := t.comparison.Data.Labels.Main; labels != "" {
		reading = append(reading, "--labels", labels)
	}
	line := slices.Concat(t.Self(), []string{"score"}, reading, []string{"-o", "predictions.csv", made, t.test})
	return []string{here(), console.Shell(namedAll(line)...)}
}

func (t *trial) next() (string, error) {
	p, err := swag.Open(t.at("posterior.safetensors"))
	if err != nil {
		return "", err
	}
	defer p.Close()
	network, err := infer.NewNetwork(p, infer.RecomputeTrained, "")
	if err != nil {
		return "", console.BadInput(err)
	}
	if t.predicts = "predict_proba(x)"; network.Traits().Targets {
		t.predicts = "predict(x)"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What swagwrap found\n\n%s\n\n", strings.Join(t.result.Verdict, "\n"))
	if t.failed != nil {
		fmt.Fprintf(&b, "# What is missing\n\nA step failed. Results of later steps are missing.\n\n```\n")
		console.PrintError(&b, t.ctx, t.failed)
		fmt.Fprintf(&b, "```\n\n")
	}
	fmt.Fprintf(&b, "`table.txt` has all methods, and `figures.json` the numbers. `report.html` has the same with figures: open it in a "+
		"browser.\n\n")
	if _, err := os.Stat(t.at("ensemble.safetensors")); err == nil {
		lines := t.score(t.result)
		fmt.Fprintf(&b, "# Score data\n\n```sh\n%s\n```\n\nThis scores the test data. Put your new data in its place. `-o -` "+
			"in place of `-o predictions.csv` prints them.\n\n", strings.Join(lines, "\n"))
	}
	if m, err := onnxio.Open(t.at("ensemble.onnx")); err == nil {
		defer m.Close()
		model, err := filepath.Abs(t.named("ensemble.onnx"))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "# Use it from Python\n\n```python\nimport swagwrap\n\nmodel = swagwrap.load(%q)\nmodel.%s  # x: arrays, tables "+
			"or paths, preprocessed as in training\n```\n\ndocs/python.md says what x may be, and how to install the module.\n\n", model,
			t.predicts)
		fmt.Fprintf(&b, "# Use the ONNX model without swagwrap\n\n```python\n%s```\n\n%s\ndocs/deploy.md shows other languages and "+
			"servers.\n\n", python(m, model), takes(network))
	}
	if code := t.result.Code; len(code) > 0 {
		fmt.Fprintf(&b, "# Collect more checkpoints\n\n```python\n%s\n```\n\n", strings.Join(code, "\n"))
	}
	fmt.Fprintf(&b, "`commands.sh` has the commands that made this folder. `sh commands.sh` makes its files again in a new one.\n")
	return b.String(), nil
}

// takes says what an exported model takes.
func takes(n *infer.Network) string {
	p, err := preprocess.Decode(n.Posterior.Card.Preprocess)
	switch {
	case err != nil || !n.TakesPictures() || n.TakesBytes():
		return fmt.Sprintf("The model takes %s, as the network did in training.", n.Takes())
	case p.Mean == nil && p.Std == nil && p.Scale == 0:
		return "The model does not preprocess. Give it what the network took in training."
	}
	return fmt.Sprintf("The model does not preprocess. Resize the pictures, and normalise them: (pixels * %.9g - %v) / %v.",
		cmp.Or(p.Scale, 1./255), p.Mean, p.Std)
}

// python returns lines of Python that run a model, which is at path.
func python(m *onnxio.Model, path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "import numpy\nimport onnxruntime\n\nsession = onnxruntime.InferenceSession(%q)\n", path)
	var in, out, results []string
	for _, v := range m.Graph.Inputs {
		name := "x"
		if len(m.Graph.Inputs) > 1 {
			name = identifier(v.Name)
		}
		fmt.Fprintf(&b, "%s = numpy.zeros(%s, %q)  # your inputs in its place: shape %s\n", name, oneExample(v), elements(v.ElemType),
			onnxio.FormatShape(v.Shape, v.Dims))
		in = append(in, fmt.Sprintf("%q: %s", v.Name, name))
	}
	for _, v := range m.Graph.Outputs {
		results, out = append(results, identifier(v.Name)), append(out, fmt.Sprintf("%q", v.Name))
	}
	fmt.Fprintf(&b, "%s = session.run([%s], {%s})\n", strings.Join(results, ", "), strings.Join(out, ", "), strings.Join(in, ", "))
	return b.String()
}

// oneExample returns the shape of an input with one example, as a tuple of Python. Dimensions that vary are 1.
func oneExample(v onnxio.Value) string {
	var sizes []string
	for _, d := range v.Shape {
		sizes = append(sizes, fmt.Sprint(max(d, 1)))
	}
	if len(sizes) == 1 {
		sizes = append(sizes, "")
	}
	return "(" + strings.TrimSuffix(strings.Join(sizes, ", "), " ") + ")"
}

// elements returns NumPy's name of a type.
func elements(t onnxio.ElemType) string {
	if t == onnxio.Float {
		return "float32"
	}
	return t.String()
}

// identifier returns a name of Python for a tensor.
func identifier(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r < 0x80 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, name)
	if clean == "" || clean[0] >= '0' && clean[0] <= '9' {
		clean = "x_" + clean
	}
	return clean
}
