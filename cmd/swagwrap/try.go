package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/fixtures/mnist"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/preprocess"
	"github.com/swagwrap/swagwrap/internal/report"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/swag"
)

// notInTry are flags of fit and compare that try sets itself, or that belong to other work than a first trial.
var notInTry = []string{"output", "force", "report", "plots", "json", "part", "extend", "quiet", "verbose", "each-run"}

func (a *app) tryCommand() *cli.Command {
	own := flags.Join([]cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write all results to `FOLDER`", Value: "swagwrap-result"},
		&cli.BoolFlag{Name: "force", Usage: "overwrite the results in a folder that exists"},
		&cli.BoolFlag{Name: "sample", Usage: "run on sample files, which are written to the folder first"},
	})
	for _, f := range flags.Join(a.fitCommand().Flags, a.compareCommand().Flags) {
		if name := f.Names()[0]; !slices.Contains(notInTry, name) && !has(own, name) {
			own = append(own, f)
		}
	}
	return &cli.Command{
		Name:      "try",
		Usage:     "do everything at once: from checkpoints to a report and a model to deploy",
		ArgsUsage: "[CKPT...] [TEST]",
		Description: `Builds the posterior, compares the methods on labelled TEST data, and makes the network or ensemble that the comparison
recommends. All results are in one folder, with an ONNX model and NEXT.md, which says what to do with them.

   swagwrap try --bn-data train.npz --val val.npz checkpoints test.npz
   swagwrap try -o result --template model.onnx --bn-data batches.npy checkpoints photos/test

   swagwrap try --sample

--sample runs it on files that the program brings: checkpoints of a small network, and pictures of digits.

try looks for what you do not give. It looks next to the checkpoints for the exported graph, saved training batches and
preprocessing. It takes classes from the names of folders, and the task from the labels. It prints what it found, and each
command before it runs.

Without --val, temperatures are fitted on one half of TEST and applied to the other half.`,
		Flags:  own,
		Action: a.try,
	}
}

// A trial is one run of try.
type trial struct {
	*app
	c      *cli.Context
	folder string
	test   string
	found  *inputs.Found
	ran    []string     // the commands, in the syntax of a shell
	table  bytes.Buffer // what compare printed
	result study.Result // of compare
}

func (a *app) try(c *cli.Context) error {
	args := c.Args().Slice()
	if c.Bool("sample") {
		return a.trySample(c)
	}
	if len(args) < 2 {
		return flags.Usagef("swagwrap try CHECKPOINTS TEST, where TEST is labelled data\nswagwrap try --sample shows it on files that the program brings", "%s, want checkpoints and test data", report.Plural(len(args), "argument"))
	}
	t := &trial{app: a, c: c, folder: filepath.Clean(c.String("output")), test: args[len(args)-1]}
	for _, path := range append(slices.Clone(args), c.String("bn-data"), c.String("val"), c.String("template")) {
		if _, err := os.Stat(path); path != "" && err != nil {
			return flags.BadInput(file.Error(path, err))
		}
	}
	made, err := t.makeFolder()
	if err != nil {
		return err
	}
	t.found = inputs.Find(inputs.Given{Checkpoints: args[:len(args)-1], Training: c.String("bn-data"), Validation: c.String("val"), Test: t.test, Template: c.String("template"),
		Task: c.String("task"), Targets: c.String("targets"), Card: c.String("card"), ClassNames: c.String("class-names"), Preprocess: c.String("preprocess"), Model: c.String("output-name")})
	for _, reason := range t.found.Reasons {
		a.Logf(c, "found %s", reason)
	}
	a.Shown = func(r study.Result) { t.result = r }
	defer func() { a.Shown = nil }()
	if err := t.compare(args[:len(args)-1]); err != nil {
		os.Remove(t.at("posterior.safetensors")) // without a comparison it is of no use, and it is made again in no time
		if made {
			os.Remove(t.folder) // only if it is empty
		}
		return err
	}
	if err := t.deploy(); err != nil {
		return err
	}
	if err := t.write(); err != nil {
		return err
	}
	what := "the report (report.html), the table, the ensemble and its ONNX model"
	if len(t.result.Next()) == 0 {
		what = "the report (report.html) and the table, and no model, since nothing is recommended"
	}
	a.Logf(c, "%s has %s: read %s first", t.folder, what, t.at("NEXT.md"))
	return nil
}

// trySample writes the sample files, and runs try on them.
func (a *app) trySample(c *cli.Context) error {
	if c.NArg() > 0 {
		return flags.Usagef("leave out --sample, or the files", "--sample: it brings its own checkpoints and test data")
	}
	t := &trial{app: a, c: c, folder: filepath.Clean(c.String("output"))}
	if _, err := t.makeFolder(); err != nil {
		return err
	}
	at := t.at("sample")
	fs.WalkDir(mnist.Files, ".", func(path string, d fs.DirEntry, _ error) error {
		if !d.IsDir() {
			os.Remove(filepath.Join(at, path)) // the file of an earlier run
		}
		return nil
	})
	if err := os.CopyFS(at, mnist.Files); err != nil {
		return flags.BadOutput(err)
	}
	in := func(name string) string { return filepath.Join(at, name) }
	args := []string{"try", "-o", t.folder, "--force", "--preprocess", "mean=0.1307 std=0.3081", "--augment", "none", "--template", in("model.onnx"), "--bn-data", in("train.npz"), "--val", in("val.npz")}
	args = append(args, t.given(flags.Join(flags.RunFlags, []cli.Flag{flags.MembersFlag}))...)
	args = append(args, in("states"), in("test.npz"))
	a.Logf(c, "%s has the sample files. This is the same as: %s", at, study.Shell(append([]string{"swagwrap"}, args...)...))
	return t.run(args)
}

// at returns the path of a result.
func (t *trial) at(name string) string { return filepath.Join(t.folder, name) }

// makeFolder makes the folder for the results. made is false if it was there.
func (t *trial) makeFolder() (made bool, err error) {
	files, err := os.ReadDir(t.folder)
	switch {
	case err == nil && len(files) > 0 && !t.c.Bool("force"):
		return false, flags.Usagef("--force overwrites the results in it, and -o FOLDER takes another folder", "%s: exists already, and is not empty", t.folder)
	case err == nil:
		return false, nil
	case !os.IsNotExist(err):
		return false, flags.Usagef("name a folder: -o FOLDER", "%s: cannot be a folder for results", t.folder)
	}
	if err := os.MkdirAll(t.folder, 0o777); err != nil {
		return false, flags.BadOutput(fmt.Errorf("%s: %w", t.folder, err))
	}
	return true, nil
}

// compare fits the posterior and compares the methods.
func (t *trial) compare(checkpoints []string) error {
	posterior, fit := t.at("posterior.safetensors"), t.fitCommand().Flags
	if err := t.step(slices.Concat([]string{"fit", "-o", posterior}, t.found.Fit, t.given(fit), checkpoints)); err != nil {
		return err
	}
	t.Stdout.Copy(&t.table)
	defer t.Stdout.Copy(nil)
	later := slices.DeleteFunc(t.compareCommand().Flags, func(f cli.Flag) bool { return has(fit, f.Names()[0]) && !has(flags.RunFlags, f.Names()[0]) })
	return t.step(slices.Concat([]string{"compare", "--report", t.at("report.html")}, t.found.Study, t.given(later), []string{posterior, t.test}))
}

// deploy makes what the comparison recommends, with the commands that it prints.
func (t *trial) deploy() error {
	for _, line := range t.result.Next() {
		words := study.Words(line)[1:]
		for i, word := range words {
			if word == study.Labelled {
				words[i] = t.test
				t.Logf(t.c, "without --val, the deployed temperature is fitted on all of %s; the table used one half for the other", t.test)
			}
		}
		more := slices.DeleteFunc(t.cli().Command(words[0]).Flags, func(f cli.Flag) bool {
			name := f.Names()[0]
			return !has(flags.RunFlags, name) || slices.Contains(words, "--"+name)
		})
		if err := t.step(slices.Concat(words[:1], t.given(more), words[1:])); err != nil {
			return err
		}
	}
	return nil
}

// step prints a command, and runs it.
func (t *trial) step(args []string) error {
	line := study.Shell(append([]string{"swagwrap"}, args...)...)
	t.ran = append(t.ran, line)
	t.Logf(t.c, "")
	t.Logf(t.c, "step %d: %s", len(t.ran), line)
	return t.run(args)
}

func (t *trial) run(args []string) error {
	env := *t.Env.Env
	if len(t.ran) > 2 { // fit and compare have said what there is to say
		env.Brief, env.Stdout = true, flags.NewStdout(io.Discard)
	}
	args = slices.Clone(args)
	for _, name := range []string{"force", "quiet", "verbose"} {
		if t.c.Bool(name) {
			args = slices.Insert(args, 1, "--"+name)
		}
	}
	return execute(t.c.Context, &env, append([]string{"swagwrap"}, args...))
}

// has reports whether one of the flags has this name.
func has(all []cli.Flag, name string) bool {
	return slices.ContainsFunc(all, func(f cli.Flag) bool { return f.Names()[0] == name })
}

// given returns those of the flags that the user gave to try.
func (t *trial) given(of []cli.Flag) []string {
	var names []string
	for _, f := range of {
		if name := f.Names()[0]; !slices.Contains(notInTry, name) {
			names = append(names, name)
		}
	}
	return flags.Given(t.c, names...)
}

// write writes the table and NEXT.md.
func (t *trial) write() error {
	next, err := t.next()
	if err != nil {
		return err
	}
	var outs []*flags.Output
	for name, text := range map[string]string{"table.txt": t.table.String(), "NEXT.md": next, "commands.sh": strings.Join(t.ran, "\n") + "\n"} {
		out, err := flags.CreateOutput(t.at(name), t.c.Bool("force"))
		if err != nil {
			return err
		}
		defer out.Abort()
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
		outs = append(outs, out)
	}
	return flags.Commit(outs...)
}

// next returns the text of NEXT.md.
func (t *trial) next() (string, error) {
	p, err := swag.Open(t.at("posterior.safetensors"))
	if err != nil {
		return "", err
	}
	defer p.Close()
	network, err := infer.NewNetwork(p, infer.RecomputeTrained, "")
	if err != nil {
		return "", flags.BadInput(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What swagwrap found\n\n%s\n\n", strings.Join(t.result.Verdict(), "\n"))
	fmt.Fprintf(&b, "`table.txt` has all methods. `report.html` has the same with figures: open it in a browser.\n\n")
	ensemble := ""
	for _, name := range []string{"calibrated.safetensors", "ensemble.safetensors"} {
		if _, err := os.Stat(t.at(name)); err == nil {
			ensemble = cmp.Or(ensemble, t.at(name))
		}
	}
	if ensemble != "" {
		fmt.Fprintf(&b, "# Score new data\n\n```sh\n%s\n```\n\n", study.Shell("swagwrap", "score", "-o", "predictions.csv", ensemble, "NEW-DATA"))
	}
	if m, err := onnxio.Open(t.at("ensemble.onnx")); err == nil {
		defer m.Close()
		for _, line := range t.ran {
			if strings.HasPrefix(line, "swagwrap sample ") {
				fmt.Fprintf(&b, "This command made the network or ensemble: `%s`\n\n", line)
			}
		}
		fmt.Fprintf(&b, "# Use the ONNX model without swagwrap\n\n```python\n%s```\n\n%s\ndocs/deploy.md shows other languages and servers.\n\n", python(m), takes(network))
	}
	if c, ok := t.result.(study.Coder); ok && len(c.Code()) > 0 {
		fmt.Fprintf(&b, "# Collect more checkpoints\n\n```python\n%s\n```\n\n", strings.Join(c.Code(), "\n"))
	}
	fmt.Fprintf(&b, "`commands.sh` has the commands that made this folder.\n")
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
	return fmt.Sprintf("The model does not preprocess. Resize the pictures, and normalise them: (pixels * %.9g - %v) / %v.", cmp.Or(p.Scale, 1./255), p.Mean, p.Std)
}

// python returns lines of Python that run a model.
func python(m *onnxio.Model) string {
	var b strings.Builder
	fmt.Fprintf(&b, "import onnxruntime\n\nsession = onnxruntime.InferenceSession(%q)\n", filepath.Base(m.Path))
	var in, out, results []string
	for _, v := range m.Graph.Inputs {
		name := "x"
		if len(m.Graph.Inputs) > 1 {
			name = identifier(v.Name)
		}
		fmt.Fprintf(&b, "%s = ...  # an array of shape %s\n", name, onnxio.FormatShape(v.Shape, v.Dims))
		in = append(in, fmt.Sprintf("%q: %s", v.Name, name))
	}
	for _, v := range m.Graph.Outputs {
		results, out = append(results, identifier(v.Name)), append(out, fmt.Sprintf("%q", v.Name))
	}
	fmt.Fprintf(&b, "%s = session.run([%s], {%s})\n", strings.Join(results, ", "), strings.Join(out, ", "), strings.Join(in, ", "))
	return b.String()
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
