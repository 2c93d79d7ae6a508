// Package shell makes completion scripts and the manual page from the program's flags.
package shell

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/word"
)

// The scripts for bash and zsh ask the program itself for completions at the cursor, with the flag that cli adds. They
// only ask for commands and flags. Anything else is a file, which the shell completes. The words on the line are passed
// on unchanged, and are never evaluated.

const bashCompletion = `# swagwrap's completion for bash: source <(swagwrap completion bash)
_swagwrap() {
	local word=${COMP_WORDS[COMP_CWORD]} ask=("${COMP_WORDS[@]:0:COMP_CWORD}")
	COMPREPLY=()
	if [[ $word == -* ]]; then
		ask+=("$word")
	elif [[ $COMP_CWORD -ne 1 ]]; then
		return
	fi
	COMPREPLY=($(compgen -W "$("${ask[@]}" --generate-bash-completion 2>/dev/null)" -- "$word"))
}
complete -o bashdefault -o default -F _swagwrap swagwrap
`

const zshCompletion = `#compdef swagwrap
# swagwrap's completion for zsh: source <(swagwrap completion zsh), after compinit,
# or save it as _swagwrap in a folder of $fpath.
_swagwrap() {
	local -a ask found
	ask=("${(@)words[1,CURRENT-1]}")
	if [[ ${words[CURRENT]} == -* ]]; then
		ask+=("${words[CURRENT]}")
	elif (( CURRENT != 2 )); then
		_files
		return
	fi
	found=("${(@f)$("${(@)ask}" --generate-bash-completion 2>/dev/null)}")
	compadd -a found
}
if [[ $funcstack[1] == _swagwrap ]]; then
	_swagwrap "$@"
else
	compdef _swagwrap swagwrap
fi
`

// Completion returns the command that prints completion scripts.
func Completion() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a script that completes commands and flags in a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: `Prints a script for the shell. To have it in every new one, put this line into its start-up file:

   source <(swagwrap completion bash)          # ~/.bashrc
   source <(swagwrap completion zsh)           # ~/.zshrc, after compinit
   swagwrap completion fish | source           # ~/.config/fish/config.fish`,
		Action: func(c *cli.Context) error {
			script, err := completion(c.App, c.Args().First())
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.App.Writer, script)
			return err
		},
	}
}

func completion(program *cli.App, shell string) (string, error) {
	switch shell {
	case "bash":
		return bashCompletion, nil
	case "zsh":
		return zshCompletion, nil
	case "fish":
		// fish gets all completions in advance. It completes files only after flags with TakesFile.
		for _, cmd := range program.Commands {
			for i, f := range cmd.Flags {
				if r, ok := f.(*flags.Row); ok && r.TakesValue() && r.Want() == "" {
					cmd.Flags[i] = &cli.GenericFlag{Name: r.Name, Aliases: r.Names()[1:], Usage: r.Usage, Value: r, TakesFile: true}
				}
			}
		}
		return program.ToFishCompletion()
	}
	return "", console.Usagef("", "completion for %w", word.Check(shell, "bash", "zsh", "fish"))
}

// Man returns the command that prints the manual page. The page ends with exitStatus.
func Man(exitStatus string) *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		Hidden:      true,
		Description: "   swagwrap man > swagwrap.1",
		Action: func(c *cli.Context) error {
			page, err := manualPage(c.App, exitStatus)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.App.Writer, page)
			return err
		},
	}
}

// manualPage returns the complete --help of all commands. The exit codes follow once, at the end.
func manualPage(program *cli.App, exitStatus string) (string, error) {
	program.Description = strings.ReplaceAll(program.Description, "\n   ", "\n    ") // a code block in Markdown
	for _, cmd := range program.Commands {
		usage := "swagwrap " + cmd.Name + " [flags] " + cmd.ArgsUsage
		cmd.UsageText = strings.TrimSpace(usage) + "\n\n" + cmd.Description
	}
	page, err := program.ToManWithSection(1)
	_, codes, _ := strings.Cut(strings.TrimSpace(exitStatus), "\n")
	return page + "\n.SH EXIT STATUS\n" + strings.ReplaceAll(codes, "\n", "\n.br\n") + "\n", err
}
