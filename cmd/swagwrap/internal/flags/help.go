package flags

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/internal/report/text"
)

// HelpWidth is the width of help pages, in columns. On a narrower terminal they have its width.
const HelpWidth = 100

// groups are the headings of help pages, with the names of their flags. Every flag is in one group.
var groups = []struct{ title, names string }{
	{"Results", "output force report plots json save tune save-batch montage maps probs topk keep-members sample"},
	{"Checkpoints", "template no-graph state-dict unused checkpoints checkpoint order last averages extend mean reference parity"},
	{"The network and its inputs", "card task class-names class-axis ignore-index state preprocess augment scores output-name columns " +
		"pad text arrays labels-as targets noise-std"},
	{"Data", "val test data labels label-column path-column file-order groups next-labels tile at key on-error expect expect-only"},
	{"Batch norm", "bn-data bn bn-samples adapt adapt-weight"},
	{"Posterior and members", "rank role allow reference-checkpoints posterior members member method scale draws settings weights " +
		"temperature seed"},
	{"Methods and metrics", "methods iterates metrics threshold shift max-members epochs all-test points samples weight-decay features"},
	{"Calibration, guarantees and stopping early", "ensemble shares coverage set by folds within"},
	{"The ONNX model", "storage quantize calibration with-preprocessing portable check"},
	{"Weights", "dtype"},
	{"A folder for the Hub, or a page", "hub figures web"},
	{"Sharing and resuming work", "store part resume estimate"},
	{"Computing", "batch-size threads memory provider device precision ort-lib quiet verbose"},
	{"To compute what the authors' code does", "deviations theta0"},
}

// common are the flags that the short help of a command shows, in this order: at most ten. Commands that are not listed
// show all of theirs.
var common = map[string]string{
	"try":       "output template bn-data val task class-names preprocess augment members sample",
	"fit":       "output template task class-names preprocess augment card last force",
	"sample":    "output bn-data members method scale settings temperature seed force",
	"score":     "output probs labels topk montage on-error resume part estimate force",
	"export":    "output member bn-data storage with-preprocessing check template checkpoint force",
	"compare":   "bn-data val report tune members max-members methods iterates json",
	"ood":       "bn-data val report members methods iterates json",
	"sweep":     "bn-data val report members scale rank epochs json",
	"geometry":  "bn-data report points samples json",
	"calibrate": "output ensemble method coverage test save labels threshold force",
	"settle":    "output within labels batch-size threads memory seed force",
}

// everywhere are flags that are not worth a line in the short help.
const everywhere = "quiet verbose"

// Help returns the help page of a command: the common flags and the first example, or with all every flag and the whole
// description. Only a single word is wider than width.
func Help(cmd *cli.Command, all bool, width int) string {
	width = max(min(width, HelpWidth), leastWidth)
	table := TableOf(cmd)
	var b strings.Builder
	usage := strings.TrimSpace("swagwrap " + cmd.Name + " [flags] " + cmd.ArgsUsage)
	fmt.Fprintf(&b, "%s\n\n   %s\n\n", Prose(fmt.Sprintf("swagwrap %s: %s", cmd.Name, cmd.Usage), width), usage)
	paragraphs := strings.Split(strings.TrimSpace(cmd.Description), "\n\n")
	shown, chosen := len(paragraphs), []string{}
	if list, ok := common[cmd.Name]; ok {
		chosen = strings.Fields(list)
	} else {
		for _, r := range table {
			if name := r.Name; !slices.Contains(strings.Fields(everywhere), name) {
				chosen = append(chosen, name)
			}
		}
	}
	if !all {
		if i := slices.IndexFunc(paragraphs, isExample); i >= 0 {
			shown = i + 1
		}
	}
	for _, p := range paragraphs[:shown] {
		if isExample(p) {
			for line := range strings.Lines(p) {
				if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > width {
					line = "   " + strings.Join(text.Wrap(line, width-10), " \\\n      ")
				}
				b.WriteString(line + "\n")
			}
			b.WriteString("\n")
			continue
		}
		b.WriteString(Prose(p, width) + "\n\n")
	}
	for _, g := range groups {
		var lines []string
		for _, r := range table {
			if slices.Contains(strings.Fields(g.names), r.Name) && (all || slices.Contains(chosen, r.Name)) {
				lines = append(lines, r.help(width)...)
			}
		}
		if lines != nil {
			fmt.Fprintf(&b, "%s:\n%s\n\n", g.title, strings.Join(lines, "\n"))
		}
	}
	if !all && (len(chosen) < len(table) || shown < len(paragraphs)) {
		fmt.Fprintln(&b, Prose(fmt.Sprintf("swagwrap %s --help-all shows all %d flags, and more about the command.", cmd.Name,
			len(table)), width))
	}
	b.WriteString("swagwrap --help lists the commands and the exit codes.\n")
	return b.String()
}

// Prose returns a paragraph in lines of at most width columns.
func Prose(paragraph string, width int) string {
	return strings.Join(text.Wrap(paragraph, width), "\n")
}

// isExample reports whether a paragraph of a description is a block of commands.
func isExample(paragraph string) bool { return strings.HasPrefix(paragraph, "   ") }

// leastWidth is the least width of help pages: the names of flags stand in its left half.
const leastWidth = 50

// explained returns the usage of a flag without backquotes, and the word for its value behind a space, or "".
func (r *Row) explained() (usage, value string) {
	if before, rest, quoted := strings.Cut(r.Usage, "`"); quoted {
		name, after, _ := strings.Cut(rest, "`")
		return before + name + after, " " + name
	}
	if r.bare {
		return r.Usage, ""
	}
	return r.Usage, " WORD"
}

// help returns the lines of a flag, with its usage in a second column.
func (r *Row) help(width int) (lines []string) {
	const column = 26
	usage, value := r.explained()
	if preset := r.GetDefaultText(); preset != "" && preset != "0" {
		usage += " (default: " + preset + ")"
	}
	head := "      --" + r.Name + value
	if r.Short != "" {
		head = "  -" + r.Short + ", --" + r.Name + value
	}
	for _, line := range text.Wrap(usage, width-column) {
		if len(head) > column-2 {
			lines, head = append(lines, head), ""
		}
		lines, head = append(lines, fmt.Sprintf("%-*s%s", column, head, line)), ""
	}
	return lines
}

// setHelp makes the help page of a command. Only a command whose help is asked for needs one.
func setHelp(cmd *cli.Command, all bool, width int) {
	cmd.CustomHelpTemplate = Verbatim(Help(cmd, all, width))
}

// Verbatim returns a template that prints a text unchanged.
func Verbatim(page string) string { return strings.ReplaceAll(page, "{{", `{{"{{"}}`) }
