package shell

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
)

const exitStatus = `Exit codes:
   0 done
  64 usage
  65 bad data
`

// program is one like ours: commands with flags of each kind, and the two of this package.
func program() (p *cli.App, out *bytes.Buffer) {
	out = new(bytes.Buffer)
	p = &cli.App{
		Name: "swagwrap", Usage: "a test", Writer: out, ErrWriter: out, HideHelpCommand: true, EnableBashCompletion: true,
		Description: "Does this:\n\n   swagwrap fit -o x y",
		Commands: []*cli.Command{
			{Name: "fit", Usage: "make a posterior", ArgsUsage: "CKPT...", Description: "Fits.\n\n   swagwrap fit -o p.safetensors a.onnx", Flags: []cli.Flag{
				flags.Text(flags.Row{Name: "output", Short: "o", Usage: "write `FILE`"}, new(string)),
				flags.Texts(flags.Row{Name: "bn-data", Usage: "read `FILE`"}, new([]string)),
				flags.Integer(flags.Row{Name: "rank", Usage: "keep `K`"}, new(int), 0, 9),
				flags.Bool(flags.Row{Name: "force", Usage: "overwrite"}, new(bool)),
			}},
			{Name: "score", Usage: "predict", ArgsUsage: "E IMAGES", Description: "Scores.", Flags: []cli.Flag{
				flags.Text(flags.Row{Name: "labels", Usage: "read `FILE`"}, new(string)),
				flags.Real(flags.Row{Name: "scale", Usage: "multiply"}, new(float64), 0, 9),
			}},
			Completion(), Man(exitStatus),
		},
		ExitErrHandler: func(*cli.Context, error) {},
	}
	return p, out
}

func output(t *testing.T, args ...string) string {
	t.Helper()
	p, out := program()
	if err := p.Run(append([]string{"swagwrap"}, args...)); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out.String()
}

// eachFlag calls f with every command that shows, and each of its flags.
func eachFlag(f func(cmd *cli.Command, flag string)) {
	p, _ := program()
	for _, cmd := range p.Commands {
		for _, flag := range cmd.Flags {
			f(cmd, flag.Names()[0])
		}
	}
}

func TestManualPage(t *testing.T) {
	page := output(t, "man")
	for _, want := range []string{".TH swagwrap 1", "swagwrap fit [flags] CKPT...", "swagwrap score [flags] E IMAGES", "swagwrap completion [flags] bash|zsh|fish",
		"swagwrap fit -o p.safetensors a.onnx", "\n.SH EXIT STATUS\n   0 done\n.br\n  64 usage\n.br\n  65 bad data\n"} {
		if !strings.Contains(strings.ReplaceAll(page, `\-`, "-"), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	_, commands, _ := strings.Cut(page, ".SH COMMANDS")
	eachFlag(func(cmd *cli.Command, flag string) {
		_, section, found := strings.Cut(commands, "\n.SH "+cmd.Name+"\n")
		section, _, _ = strings.Cut(section, "\n.SH ")
		if !found || !strings.Contains(strings.ReplaceAll(section, `\-`, "-"), "--"+flag) {
			t.Errorf("no --%s of %s in\n%s", flag, cmd.Name, page)
		}
	})
	if n := strings.Count(page, "64 usage"); n != 1 {
		t.Errorf("the exit codes stand there %d times", n)
	}
	if strings.Contains(page, ".SH man") {
		t.Error("a hidden command is in the manual")
	}
}

// The script for fish has everything in it; files follow the flags that take text.
func TestFish(t *testing.T) {
	script := output(t, "completion", "fish")
	files := map[string]bool{"output": true, "bn-data": true, "labels": true}
	eachFlag(func(cmd *cli.Command, flag string) {
		if !strings.Contains(script, " -a '"+cmd.Name+"'") {
			t.Errorf("no %s in\n%s", cmd.Name, script)
		}
		lines := slices.DeleteFunc(strings.Split(script, "\n"), func(line string) bool {
			return !strings.Contains(line, "__fish_seen_subcommand_from "+cmd.Name+"'") || !strings.Contains(line, " -l "+flag+" ")
		})
		if len(lines) != 1 || strings.Contains(lines[0], " -f ") == files[flag] {
			t.Errorf("--%s of %s, files %v: %q", flag, cmd.Name, files[flag], lines)
		}
	})
	if strings.Contains(script, "-a 'man'") {
		t.Error("a hidden command is completed")
	}
}

// The scripts for bash and zsh ask the program, which answers with every command
// and flag.
func TestAsked(t *testing.T) {
	for shell, want := range map[string]string{"bash": "complete -o bashdefault -o default -F _swagwrap swagwrap\n", "zsh": "#compdef swagwrap\n"} {
		if script := output(t, "completion", shell); !strings.Contains(script, want) || !strings.Contains(script, " --generate-bash-completion 2>/dev/null)") {
			t.Errorf("%s: %s", shell, script)
		}
	}
	ask := func(words ...string) []string {
		// The library reads the word before the last from here, not from what it is given.
		defer func(old []string) { os.Args = old }(os.Args)
		os.Args = append(append([]string{"swagwrap"}, words...), "--generate-bash-completion")
		return strings.Fields(output(t, os.Args[1:]...))
	}
	commands := ask()
	eachFlag(func(cmd *cli.Command, flag string) {
		if !slices.Contains(commands, cmd.Name) {
			t.Errorf("no %s in %q", cmd.Name, commands)
		}
		if found := ask(cmd.Name, "--"+flag[:1]); !slices.Contains(found, "--"+flag) {
			t.Errorf("no --%s of %s in %q", flag, cmd.Name, found)
		}
	})
	if slices.Contains(commands, "man") {
		t.Error("a hidden command is completed")
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"completion", "tcsh"}, `completion for "tcsh": want one of bash, zsh or fish`},
	} {
		p, out := program()
		if err := p.Run(append([]string{"swagwrap"}, c.args...)); err == nil || err.Error() != c.want || out.Len() > 0 {
			t.Errorf("%q: %v, %q", c.args, err, out)
		}
	}
	// A script or page that cannot be written is an error.
	for _, args := range [][]string{{"completion", "zsh"}, {"man"}} {
		p, _ := program()
		p.Writer = closed{}
		if err := p.Run(append([]string{"swagwrap"}, args...)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// closed is a writer that takes nothing.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }
