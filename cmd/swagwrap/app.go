package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/shell"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/packages"
	"github.com/swagwrap/swagwrap/internal/report/text"
	"github.com/swagwrap/swagwrap/internal/tally"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/weights"
)

// app is one run of the program.
type app struct {
	*console.Env
	*open.Opener
	parsed func() // called when an action begins
}

func newApp(env *console.Env, parsed func()) *app {
	computes := open.RuntimeOptions{Provider: ort.Provider{Name: ort.CPU, Precision: ort.F32}}
	return &app{env, &open.Opener{Reporter: env, Findings: findings, Computes: computes}, parsed}
}

// parsing is held while a command line is parsed. The library stores its flags in global variables.
var parsing sync.Mutex

// run runs the program for main and for every test. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	env := &console.Env{Stdout: console.NewStdout(stdout), Stderr: stderr, Program: args[0]}
	err := env.Stdout.Outcome(weights.Guarded(func() error { return execute(ctx, env, args) })())
	if err != nil {
		err = console.Changed(err)
		console.PrintError(stderr, ctx, err)
	}
	return console.ExitCode(ctx, err)
}

// execute parses a command line, and runs its command.
func execute(ctx context.Context, env *console.Env, args []string) error {
	parsing.Lock()
	parsed := sync.OnceFunc(parsing.Unlock)
	defer parsed()
	file.Forget()
	a := newApp(env, parsed)
	program := a.cli()
	err := program.RunContext(ctx, flags.Anywhere(program, args, env.Screen().Width))
	if note := a.Sideways.Note(); note != "" {
		a.Logf("note: %s", note)
	}
	return err
}

// frugal is the percentage of garbage for commands whose buffers are large, live long and hold no pointers. Frequent
// collection is cheap there, and garbage from images and scores does not double the memory.
const frugal = 20

// A command is one of the program's: its words, its flags, and what it does with the arguments when the flags have filled its
// options.
type command struct {
	name, usage, args, description string
	flags.Table
	run func(ctx context.Context, args []string) error
}

func (a *app) commands() []*command {
	return []*command{
		tryCommand(a), inspectCommand(a), fitCommand(a), sampleCommand(a), exportCommand(a), listCommand(a), prepareCommand(a),
		scoreCommand(a), mergeCommand(a), compareCommand(a), oodCommand(a), calibrateCommand(a), settleCommand(a),
		sweepCommand(a), geometryCommand(a), setupCommand(a), doctorCommand(a),
	}
}

func (a *app) command(name string) *command {
	all := a.commands()
	return all[slices.IndexFunc(all, func(c *command) bool { return c.name == name })]
}

// library returns the command as the library takes it.
func (c *command) library(a *app) *cli.Command {
	c.Table = append(c.Table, flags.Bool(flags.Row{Name: "quiet", Short: "q", Usage: "print errors only"}, &a.Quiet),
		flags.Bool(flags.Row{
			Name:  "verbose",
			Short: "v",
			Usage: "print more about what happens, and notes about the columns of tables",
		}, &a.Verbose))
	return &cli.Command{
		Name:         c.name,
		Usage:        c.usage,
		ArgsUsage:    c.args,
		Description:  c.description,
		Flags:        c.Library(),
		OnUsageError: onUsageError,
		Action:       func(line *cli.Context) error { return a.start(c, line) },
	}
}

// start reads a command line as the options of a command, and runs it.
func (a *app) start(c *command, line *cli.Context) error {
	a.parsed()
	a.Usage = c.name + " " + c.args
	if err := cmp.Or(c.Check(), flags.Positionals(line)); err != nil {
		return err
	}
	if err := c.Complete(); err != nil {
		return err
	}
	if c.Is("memory") { // garbage takes memory, too
		defer debug.SetGCPercent(debug.SetGCPercent(frugal))
	}
	ctx, passes := tally.Start(line.Context)
	err := a.Opened(c.run(ctx, line.Args().Slice()))
	if runs := passes.Counts(); runs.Wanted+runs.Hidden() > 0 {
		a.Debugf("runs: %v", runs)
	}
	return err
}

func init() {
	// -v is for verbose.
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"}
}

const exitStatus = `Exit codes:
    0  done
    1  failed, and may be retried
    3  finished, but some inputs were unreadable
    4  parts are missing
   64  wrong usage
   65  bad model, posterior or data
   69  no usable ONNX Runtime
   75  disk full, another failure of input or output, or no memory or thread left
  130  interrupted by SIGINT (138 by SIGUSR1, 143 by SIGTERM)
  141  the reader of standard output has gone, as head does
`

// overview is the help page of the program.
const overview = `swagwrap: honest uncertainty for trained networks, from their SGD checkpoints

   swagwrap try run test/       # run has checkpoints and a graph, test has labelled data
   swagwrap try --sample        # the same on sample files

try does everything. It builds the SWAG posterior, compares it with temperature scaling and other methods, and writes a report
and an ONNX model.

`

// introduce writes the overview, and returns the width of help pages in a terminal of width columns.
func introduce(b *strings.Builder, width int) int {
	width = min(width, flags.HelpWidth)
	for paragraph := range strings.SplitSeq(strings.TrimSpace(overview), "\n\n") {
		if !strings.HasPrefix(paragraph, " ") {
			paragraph = flags.Prose(paragraph, width)
		}
		b.WriteString(paragraph + "\n\n")
	}
	return width
}

// atAGlance is what the program prints without a command: one screen.
func atAGlance(width int) string {
	var b strings.Builder
	width = introduce(&b, width)
	for _, chapter := range chapters {
		names := strings.ReplaceAll(chapter.names, " ", ", ")
		for _, line := range text.Hang(fmt.Sprintf("  %-25s", chapter.title), names, width) {
			b.WriteString(line + "\n")
		}
	}
	b.WriteString("\n" + flags.Prose("swagwrap --help says what each command does, and lists the exit codes.", width) + "\n")
	return b.String()
}

// chapters are the groups of commands on the help page.
var chapters = []struct{ title, names string }{
	{"Everything at once", "try"},
	{"Step by step", "inspect fit compare sample score calibrate export prepare"},
	{"Further studies", "sweep settle ood geometry"},
	{"Large data and clusters", "list merge"},
	{"The program", "setup doctor completion"},
}

// help returns the help page of the program. Only single words and examples are wider than width.
func help(commands []*cli.Command, width int) string {
	var b strings.Builder
	width = introduce(&b, width)
	for _, chapter := range chapters {
		fmt.Fprintf(&b, "%s:\n", chapter.title)
		for _, name := range strings.Fields(chapter.names) {
			i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.Name == name })
			for _, line := range text.Hang(fmt.Sprintf("  %-12s", name), commands[i].Usage, width) {
				b.WriteString(line + "\n")
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString(flags.Prose("swagwrap COMMAND --help shows an example and the common flags, and --help-all shows all of them. "+
		"swagwrap --version prints the version.", width) + "\n\n")
	for line := range strings.Lines(exitStatus) {
		code, meaning, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			b.WriteString(line)
			continue
		}
		for _, line := range text.Hang(fmt.Sprintf("%5s  ", code), meaning, width) {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func (a *app) cli() *cli.App {
	c := &cli.App{
		Name:        "swagwrap",
		Usage:       "calibrated uncertainty for trained networks, from SGD checkpoints in ONNX",
		Version:     console.Version(),
		Description: strings.TrimSpace(strings.SplitAfterN(overview, "\n", 2)[1]),
		Writer:      a.Stdout,
		ErrWriter:   a.Stderr,
		// By default the library prints help on stdout, exits inside Run, splits flags at commas and ignores unknown
		// commands.
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		EnableBashCompletion:      true,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c, c.Args().First())
			}
			_, err := io.WriteString(a.Stdout, atAGlance(a.Screen().Width))
			return err
		},
	}
	for _, command := range a.commands() {
		c.Commands = append(c.Commands, command.library(a))
	}
	for _, hidden := range []*command{topicCommand(a), outputsCommand(a)} {
		own := hidden.library(a)
		own.Hidden = true
		c.Commands = append(c.Commands, own)
	}
	for _, words := range []*cli.Command{shell.Completion(), shell.Man(exitStatus)} {
		action := words.Action
		own := &command{name: words.Name, usage: words.Usage, args: words.ArgsUsage, description: words.Description}
		cmd := own.library(a)
		cmd.Hidden = words.Hidden
		cmd.Action = func(line *cli.Context) error {
			own.run = func(context.Context, []string) error { return action(line) }
			return a.start(own, line)
		}
		c.Commands = append(c.Commands, cmd)
	}
	c.CustomAppHelpTemplate = flags.Verbatim(help(c.Commands, a.Screen().Width))
	return c
}

// fromElsewhere maps names that other programs use for commands.
var fromElsewhere = map[string]string{
	"predict":     "score",
	"infer":       "score",
	"inference":   "score",
	"run":         "score",
	"evaluate":    "compare",
	"eval":        "compare",
	"test":        "compare",
	"benchmark":   "compare",
	"train":       "fit",
	"posterior":   "fit",
	"draw":        "sample",
	"ensemble":    "sample",
	"convert":     "export",
	"onnx":        "export",
	"info":        "inspect",
	"show":        "inspect",
	"install":     "setup",
	"check":       "doctor",
	"tune":        "sweep",
	"temperature": "calibrate",
}

func unknownCommand(c *cli.Context, name string) error {
	var names []string
	for _, cmd := range c.App.VisibleCommands() {
		names = append(names, cmd.Name)
	}
	meant := cmp.Or(fromElsewhere[strings.ToLower(name)], word.Nearest(name, names))
	hints := []string{"swagwrap --help lists the commands"}
	if meant != "" {
		hints = append([]string{fmt.Sprintf("did you mean swagwrap %s (%s)?", meant, c.App.Command(meant).Usage)}, hints...)
	}
	return console.Usagef(strings.Join(hints, "\n"), "unknown command %q", name)
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	name, known := "swagwrap", c.App.VisibleFlags()
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != name {
		name, known = name+" "+c.Command.Name, c.Command.Flags
	}
	list := name + " --help lists the flags"
	_, flag, unknown := strings.Cut(err.Error(), "not defined: -")
	switch {
	case !unknown:
		return console.Usagef(list, "%w", err)
	case flag == "antithetic":
		return console.Usagef("leave it out: members come in antithetic pairs. --draws independent draws them one by one",
			"--antithetic is now --draws antithetic, and the default")
	case flags.OnCard(flag) != "":
		list = "it is said once, at fit, and stays with the posterior: swagwrap fit " + flags.OnCard(flag) + " CKPT..."
	case len(flag) > 1: // single letters are too similar to each other
		var names, others []string
		for _, f := range known {
			names = append(names, f.Names()...)
		}
		for _, cmd := range c.App.VisibleCommands() {
			if slices.ContainsFunc(cmd.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), flag) }) {
				others = append(others, cmd.Name)
			}
		}
		if meant := word.Nearest(flag, names); meant != "" {
			list = fmt.Sprintf("did you mean --%s?\n%s", meant, list)
		} else if others != nil {
			list = fmt.Sprintf("--%s is a flag of other commands: %s\n%s", flag, strings.Join(others, ", "), list)
		}
	}
	return console.Usagef(list, "unknown flag --%s", flag)
}

func setupCommand(a *app) *command {
	name := ""
	return &command{
		name:  "setup",
		usage: "fetch ONNX Runtime into the user's cache folder",
		description: `Fetches ONNX Runtime ` + ort.Version + ` once, from its official PyPI wheel, with pip. Without pip it is ` + ort.DeviceVersion + ` from the npm package,
which gives the same results. It checks the SHA-256 and keeps the library in the user's cache folder. Nothing else is installed.

   swagwrap setup

With --provider webgpu it is the build that computes on GPUs with Vulkan or Metal, with npm: 114 MB, and 46 MB on disk.
With --provider openvino it is ONNX Runtime ` + ort.OpenVINOVersion + ` with Intel's kernels, in addition, with pip: 80 MB, and 133 MB on
disk. Commands use it with --provider openvino. With --provider web it is ONNX Runtime for browsers, which export --web copies:
33 MB, and 14 MB on disk, with npm, or from the archive that ` + ort.WebEnv + ` names.`,
		Table: flags.Table{flags.FetchedProvider(&name)},
		run:   func(ctx context.Context, _ []string) error { return a.setup(ctx, flags.Fetched(name)) },
	}
}

func (a *app) setup(ctx context.Context, p ort.Provider) error {
	library, err := p.Install(ctx, packages.Managers{}, func(s string) { a.Logf("%s", s) })
	if err != nil {
		return err
	}
	if !p.Computes() {
		a.Logf("ONNX Runtime %s for browsers: %s", ort.DeviceVersion, filepath.Dir(library.Path))
		return nil
	}
	rt, err := p.Open(library)
	if err != nil {
		return err
	}
	a.Logf("ONNX Runtime %s: %s", rt.Version(), library.Path)
	if other := os.Getenv(ort.LibraryEnv); other != "" && p.Name == ort.CPU {
		a.Logf("note: %s goes before it: unset that, or %s is taken", ort.LibraryEnv, other)
	}
	return nil
}
