package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/inputs"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/shell"
	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/ort"
	"github.com/swagwrap/swagwrap/internal/word"
	"github.com/swagwrap/swagwrap/weights"
)

// app is one run of the program.
type app struct {
	*inputs.Env
	parsed func() // called when an action begins
}

// parsing is held while a command line is parsed. The library stores its flags in global variables.
var parsing sync.Mutex

// run runs the program for main and for every test. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	parsing.Lock()
	parsed := sync.OnceFunc(parsing.Unlock)
	defer parsed()
	file.Forget()
	a := &app{&inputs.Env{Env: &flags.Env{Stdout: flags.NewStdout(stdout), Stderr: stderr}}, parsed}
	program := a.cli()
	err := weights.Guarded(func() error { return program.RunContext(ctx, flags.Anywhere(program, args)) })()
	err = a.Stdout.Outcome(err)
	if err != nil {
		err = flags.Changed(err)
		flags.PrintError(stderr, ctx, err)
	}
	return flags.ExitCode(ctx, err)
}

func init() {
	// -v is for verbose.
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"}
}

const exitStatus = `
EXIT STATUS
   0 done; 1 failed, may be retried; 3 finished, some inputs unreadable; 4 parts are missing; 64 usage; 65 bad model, posterior or data; 69 no usable ONNX Runtime;
   75 disk full, I/O, or no memory or thread to be had; 130, 138, 143 interrupted by SIGINT, SIGUSR1, SIGTERM;
   141 the reader of standard output went away, as head does`

func (a *app) cli() *cli.App {
	c := &cli.App{
		Name:    "swagwrap",
		Usage:   "calibrated uncertainty for trained networks, from SGD checkpoints in ONNX",
		Version: flags.Version(),
		Description: `A folder of SGD checkpoints goes in; predictions with honest uncertainty come out:

   swagwrap fit     --task classes -o posterior.safetensors checkpoints/*.onnx
   swagwrap compare --bn-data train.npz --val val.npz posterior.safetensors test.npz

Batch-norm statistics are recomputed on training data for every set of weights (--bn-data).
No training framework is needed, no Python, and no gradients.`,
		Writer:    a.Stdout,
		ErrWriter: a.Stderr,
		Commands: []*cli.Command{
			a.tryCommand(), a.inspectCommand(), a.fitCommand(), a.sampleCommand(), a.exportCommand(),
			a.listCommand(), a.scoreCommand(), a.mergeCommand(), a.compareCommand(), a.oodCommand(), a.calibrateCommand(), a.sweepCommand(), a.geometryCommand(), a.setupCommand(), a.doctorCommand(),
			shell.Completion(), shell.Man(exitStatus),
		},
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
			return cli.ShowAppHelp(c)
		},
	}
	flags.ShowReference(c.Commands, false)
	for _, cmd := range c.Commands {
		if len(cmd.VisibleFlags()) < len(cmd.Flags) { // flags.Anywhere sees to it
			cmd.Flags = append(cmd.Flags, &cli.BoolFlag{Name: "help-all", Usage: "show help, with the flags that only compute what the authors' code does"})
		}
		cmd.OnUsageError = onUsageError
		cmd.Description = strings.TrimSpace(cmd.Description) + "\n" + exitStatus
		cmd.Flags = append(cmd.Flags,
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print errors only"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print more about what happens, and notes about the columns of tables"})
		action := cmd.Action
		cmd.Action = func(c *cli.Context) error {
			a.parsed()
			if err := flags.Positionals(c); err != nil {
				return err
			}
			return action(c)
		}
	}
	return c
}

// fromElsewhere maps names that other programs use for commands.
var fromElsewhere = map[string]string{
	"predict": "score", "infer": "score", "inference": "score", "run": "score", "evaluate": "compare", "eval": "compare", "test": "compare", "benchmark": "compare",
	"train": "fit", "posterior": "fit", "draw": "sample", "ensemble": "sample", "convert": "export", "onnx": "export", "info": "inspect", "show": "inspect",
	"install": "setup", "check": "doctor", "tune": "sweep", "temperature": "calibrate",
}

// unknownCommand returns the error for a command that does not exist.
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
	return flags.Usagef(strings.Join(hints, "\n"), "unknown command %q", name)
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
		return flags.Usagef(list, "%w", err)
	case flags.OnCard(flag):
		list = "it is said once, at fit, and stays with the posterior: swagwrap fit --" + flag
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
	return flags.Usagef(list, "unknown flag --%s", flag)
}

func (a *app) setupCommand() *cli.Command {
	return &cli.Command{
		Name:  "setup",
		Usage: "fetch ONNX Runtime into the user's cache folder",
		Description: `Fetches ONNX Runtime ` + ort.Version + ` once, from its official npm package or PyPI wheel, with whichever of npm and pip
is installed, checks its SHA-256 and keeps it in the user's cache folder. Nothing else is installed.

   swagwrap setup

With --provider openvino it is ONNX Runtime ` + ort.OpenVINOVersion + ` with Intel's kernels, beside the other, with pip: 80 MB, and 133 MB on
disk. Commands use it with --provider openvino.`,
		Flags: []cli.Flag{flags.ProviderFlag},
		Action: func(c *cli.Context) error {
			p := ort.Provider{Name: c.String("provider")}
			path, err := p.Install(c.Context, func(s string) { a.Logf(c, "%s", s) })
			if err != nil {
				return err
			}
			rt, err := p.Open(path)
			if err != nil {
				return err
			}
			a.Logf(c, "ONNX Runtime %s: %s", rt.Version(), path)
			if other := os.Getenv(ort.LibraryEnv); other != "" && p.Name == ort.CPU {
				a.Logf(c, "note: %s goes before it: unset that, or %s is taken", ort.LibraryEnv, other)
			}
			return nil
		},
	}
}
