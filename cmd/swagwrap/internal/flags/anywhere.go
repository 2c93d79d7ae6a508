package flags

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/internal/report"
)

// Anywhere returns the program's arguments with the flags of a command before its other arguments, because the library
// accepts them only there. An argument after "--" is never a flag. Arguments without a command stay unchanged, and so
// does a line that a shell wants completed. A help page has at most width columns.
func Anywhere(program *cli.App, args []string, width int) []string {
	const before = 2 // the program and the command
	if len(args) == before+1 && args[1] == "help" && program.Command(args[2]) != nil {
		args = []string{args[0], args[2], "--help"}
	} else if len(args) == before+1 && args[1] == "help" {
		args = []string{args[0], "topic", args[2]}
	}
	if len(args) == before && (args[1] == "help" || args[1] == "version") {
		return []string{args[0], "--" + args[1]}
	}
	if len(args) <= before || args[len(args)-1] == "--"+cli.BashCompletionFlag.Names()[0] {
		return args
	}
	command := program.Command(args[1])
	if command == nil {
		return args
	}
	var flags, others []string
	for rest := args[before:]; len(rest) > 0; {
		arg := rest[0]
		rest = rest[1:]
		if name, value, ok := attached(command, arg); ok {
			arg, rest = name, slices.Concat([]string{value}, rest)
		}
		switch {
		case arg == "--":
			others, rest = append(others, rest...), nil
		case arg == "-" || !strings.HasPrefix(arg, "-"):
			others = append(others, arg)
		case arg == "--help-all":
			setHelp(command, true, width)
			return append(slices.Clone(args[:before]), "--help")
		case slices.Contains(cli.HelpFlag.Names(), strings.TrimLeft(arg, "-")): // with an argument the library would look for a subcommand
			setHelp(command, false, width)
			return append(slices.Clone(args[:before]), arg)
		case !takesNext(command, arg):
			flags = append(flags, arg)
		case len(rest) == 0: // the library reports the missing value
			return slices.Concat(args[:before], flags, []string{arg})
		default:
			flags = append(flags, arg, rest[0])
			rest = rest[1:]
		}
	}
	return slices.Concat(args[:before], flags, []string{"--"}, others)
}

// attached cuts -j4 into -j and 4, as other programs take it.
func attached(command *cli.Command, arg string) (name, value string, ok bool) {
	const short = len("-j")
	if len(arg) <= short || arg[0] != '-' || arg[1] == '-' || arg[short] == '=' || known(command, arg[1:]) != nil {
		return "", "", false
	}
	return arg[:short], arg[short:], takesNext(command, arg[:short])
}

// takesNext reports whether the value of a flag is the next argument. This is so if the flag has a value, and the value
// does not follow "=". The library reports flags that the command does not have.
func takesNext(command *cli.Command, arg string) bool {
	f, ok := known(command, strings.TrimPrefix(arg[1:], "-")).(cli.DocGenerationFlag)
	return ok && f.TakesValue()
}

func known(command *cli.Command, name string) cli.Flag {
	for _, f := range command.Flags {
		if slices.Contains(f.Names(), name) {
			return f
		}
	}
	return nil
}

// Positionals checks the number of arguments against ArgsUsage. A name in brackets may be missing. One with "..." may
// occur several times.
func Positionals(c *cli.Context) error {
	want := strings.Fields(c.Command.ArgsUsage)
	least := len(slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s[0] == '[' }))
	many := strings.Contains(c.Command.ArgsUsage, "...")
	if n := c.NArg(); n < least || n > len(want) && !many {
		return console.Usagef("swagwrap "+c.Command.Name+" --help shows an example", "%s, want %s", report.Plural(n, "argument"),
			c.Command.ArgsUsage)
	}
	return nil
}
