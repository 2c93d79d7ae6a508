package main

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/ort"
)

// app is one run of the program.
type app struct {
	stdout, stderr io.Writer
}

// run is what main and every test call. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	a := &app{stdout, stderr}
	err := a.cli().RunContext(ctx, args)
	if err != nil {
		printError(stderr, ctx, err)
	}
	return exitCode(ctx, err)
}

func init() {
	// -v is for verbose.
	cli.VersionFlag = &cli.BoolFlag{Name: "version", Aliases: []string{"V"}, Usage: "print the version"}
}

// producer is what the files written by this program say about it.
func producer() string { return "swagwrap " + version() }

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

const exitStatus = `
EXIT STATUS
   0 done; 1 failed, may be retried; 3 finished, some inputs unreadable; 64 usage; 65 bad model, posterior or data; 69 no usable ONNX Runtime;
   75 disk full or I/O; 130, 143 interrupted`

func (a *app) cli() *cli.App {
	c := &cli.App{
		Name:    "swagwrap",
		Usage:   "calibrated uncertainty for trained networks, from SGD checkpoints in ONNX",
		Version: version(),
		Description: `A folder of SGD checkpoints goes in; predictions with honest uncertainty come out:

   swagwrap fit     -o posterior.safetensors checkpoints/*.onnx
   swagwrap compare --bn-data train.npz --val val.npz posterior.safetensors test.npz

Batch-norm statistics are recomputed on training images for every set of weights (--bn-data).
No training framework is needed, no Python, and no gradients.`,
		Writer:    a.stdout,
		ErrWriter: a.stderr,
		Commands: []*cli.Command{
			a.inspectCommand(), a.fitCommand(), a.sampleCommand(), a.exportCommand(),
			a.scoreCommand(), a.compareCommand(), a.oodCommand(), a.calibrateCommand(), a.sweepCommand(), a.geometryCommand(), a.setupCommand(),
		},
		// The defaults of the library print help on stdout, exit inside Run, split
		// flags at commas and ignore unknown commands.
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              onUsageError,
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return usagef("swagwrap --help lists the commands", "unknown command %q", c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
	}
	for _, cmd := range c.Commands {
		cmd.OnUsageError = onUsageError
		cmd.Description = strings.TrimSpace(cmd.Description) + "\n" + exitStatus
		cmd.Flags = append(cmd.Flags,
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print errors only"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "print more about what happens"})
		action := cmd.Action
		cmd.Action = func(c *cli.Context) error {
			for _, arg := range c.Args().Slice() {
				if strings.HasPrefix(arg, "-") && arg != "-" {
					return usagef("put flags first: swagwrap "+c.Command.Name+" [flags] "+c.Command.ArgsUsage, "flag %s stands after an argument", arg)
				}
			}
			return action(c)
		}
	}
	return c
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	name := "swagwrap"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != name {
		name += " " + c.Command.Name
	}
	return usagef(name+" --help lists the flags", "%w", err)
}

// positionals checks the number of arguments: names without "..." once each.
func positionals(c *cli.Context) error {
	want := strings.Fields(c.Command.ArgsUsage)
	many := strings.HasSuffix(c.Command.ArgsUsage, "...")
	if n := c.NArg(); n < len(want) || n > len(want) && !many {
		return usagef("swagwrap "+c.Command.Name+" --help shows an example", "%d arguments, want %s", n, c.Command.ArgsUsage)
	}
	return nil
}

// logf tells the user about the work: on standard error, unless -q.
func (a *app) logf(c *cli.Context, format string, args ...any) {
	if !c.Bool("quiet") {
		fmt.Fprintf(a.stderr, format+"\n", args...)
	}
}

// debugf is logf with -v only.
func (a *app) debugf(c *cli.Context, format string, args ...any) {
	if c.Bool("verbose") {
		a.logf(c, format, args...)
	}
}

// warnf is logf for what the user must see.
func (a *app) warnf(c *cli.Context, format string, args ...any) {
	a.logf(c, "warning: "+format, args...)
}

// warnLong is warnf for a text of several lines.
func (a *app) warnLong(c *cli.Context, text string) {
	a.logf(c, "%s", strings.Join(wrapped("warning: ", text), "\n"))
}

// openRuntime loads ONNX Runtime.
func (a *app) openRuntime(c *cli.Context) (*ort.Runtime, error) {
	path, err := ort.Locate(c.String("ort-lib"))
	if err != nil {
		return nil, err
	}
	rt, err := ort.Open(path)
	if err == nil {
		a.debugf(c, "ONNX Runtime %s: %s", rt.Version(), rt.Path())
	}
	return rt, err
}

func (a *app) setupCommand() *cli.Command {
	return &cli.Command{
		Name:  "setup",
		Usage: "fetch ONNX Runtime into the user's cache folder",
		Description: `Fetches ONNX Runtime ` + ort.Version + ` once, from its official npm package or PyPI wheel, with whichever of npm and pip
is installed, checks its SHA-256 and keeps it in the user's cache folder. Nothing else is installed.

   swagwrap setup`,
		Action: func(c *cli.Context) error {
			if err := positionals(c); err != nil {
				return err
			}
			path, err := ort.Install(c.Context, ort.InstallOptions{Progress: func(s string) { a.logf(c, "%s", s) }})
			if err != nil {
				return err
			}
			if _, err := ort.Open(path); err != nil {
				return err
			}
			a.logf(c, "ONNX Runtime %s: %s", ort.Version, path)
			return nil
		},
	}
}
