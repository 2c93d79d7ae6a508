package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
)

// badNumbers are what a number of a command line may be, by mistake or on purpose.
var badNumbers = []string{"0", "1", "-1", "-0", "9223372036854775807", "1000000000000000000", "1e18", "NaN", "+Inf", "-Inf", "1e-300", "1e300", "", "0x10", "1e3"}

// structured are the texts with numbers that flags for words take. %s is the number.
var structured = map[string][]string{
	"adapt": {"blocks=%s"},
	"augment": {"RandomCrop(%s)", "RandomCrop(4, padding=%s)", "RandomCrop(4, fill=%s)", "RandomHorizontalFlip(p=%s)", "RandomResizedCrop(%s)", "RandomResizedCrop(4, scale=(%[1]s, %[1]s))",
		"RandomResizedCrop(4, ratio=(%[1]s, %[1]s))", "RandomResizedCrop(4, interpolation=%s)", "Resize(%s)", "Resize(%s), RandomCrop(4)", "CenterCrop(%s)", "CenterCrop(%s), RandomCrop(4)", "ColorJitter(%s)", "ColorJitter(hue=%s)", "RandomErasing(p=%s)",
		"RandomErasing(1, (%[1]s, %[1]s))", "RandomErasing(1, ratio=(%[1]s, %[1]s))", "RandomErasing(1, value=%s)", "Normalize(%s, 1)", "Normalize(0, %s)", "RandomCrop(4, padding=1/%s)"},
	"bn-samples": {"%s", "%s%%"},
	"coverage":   {"%s", "%s%%", "size=%s"},
	"epochs":     {"%s"},
	"groups":     {"unit=folder:%s", "report=folder:%s"},
	"members":    {"%s", "0-%s"},
	"memory":     {"%s", "%sM", "%sT"},
	"pad":        {"%s", "input_ids=%[1]s,attention_mask=%[1]s"},
	"part":       {"0/%s", "%s/3"},
	"preprocess": {"mean=%s", "std=%s", "mean=%[1]s,%[1]s,%[1]s std=%[1]s,%[1]s,%[1]s", "input-size=%s", "input-size=4x%s", "input-size=4 resize-size=%s", "input-size=4 crop-pct=%s"},
	"rank":       {"%s", "0,%s"},
	"scale":      {"%s", "0.5,%s"},
	"expect":     {"accuracy=%s", "loss=%s", "n=%s loss=0.5"},
	"shift":      {"common examples=%s", "common each=%s", "common severities=%s"},
	"state":      {"h0=hn@%s,c0=cn@1"},
	"targets":    {"head=none mean=%s std=1", "head=none mean=0 std=%s"},
	"text":       {"rows=%s", "bptt=%s", "rows=%s reset=documents", "rows=%s reset=windows", "bptt=%s reset=windows", "bptt=%s reset=documents", "window=%s", "window=4 stride=%s", "context=%s"},
	"threads":    {"%s"},
	"threshold":  {"%s", "risk=%s", "precision=%s", "recall=%s", "specificity=%s"},
	"tile":       {"%s", "4,%s"},
	"weights":    {"%s", "1,%s"},
	"within":     {"%s,99%%", "0.001,%s%%"},
}

// wordless are flags for words without numbers.
var wordless = strings.Fields(`allow arrays at averages bn bn-data calibration card check checkpoint checkpoints class-names columns data deviations draws dtype ensemble expect-only extend features figures file-order hub iterates key label-column labels labels-as by maps mean method methods metrics
	montage on-error order ort-lib output output-name parity path-column plots posterior precision provider quantize reference report role runtime save save-batch scores set settings shares state-dict store storage task template test theta0 tune unused val web`)

// numbersOf returns the texts of a flag's values, or fails if nothing says which. %s is the number. around has the numbers
// next to the bounds.
func numbersOf(t *testing.T, command string, f cli.Flag) (texts, around []string) {
	t.Helper()
	name, r := f.Names()[0], f.(*flags.Row)
	if r.Want() != "" {
		return []string{"%s"}, neighbours(t, command, r)
	}
	if texts = structured[name]; texts == nil && r.TakesValue() && !slices.Contains(wordless, name) {
		t.Errorf("swagwrap %s --%s: is a new flag: list its texts with numbers in structured, or its name in wordless", command, name)
	}
	return texts, nil
}

var (
	spanOf  = regexp.MustCompile(`(\S+) to ([^\s,]+)`)
	wholeOf = regexp.MustCompile(`-?\d+`)
)

// neighbours returns the numbers at the bounds of a flag, and next to them.
func neighbours(t *testing.T, command string, f *flags.Row) (list []string) {
	t.Helper()
	m := spanOf.FindStringSubmatch(f.Want())
	for _, n := range wholeOf.FindAllString(f.Want(), -1) {
		if m == nil {
			list = append(list, n)
		}
	}
	for i := 1; m != nil && i < 3; i++ {
		switch n, err := strconv.ParseInt(m[i], 10, 64); {
		case !f.Integer():
			x, err := strconv.ParseFloat(m[i], 64)
			if err != nil {
				t.Errorf("swagwrap %s --%s: want %s", command, f.Names()[0], f.Want())
			}
			list = append(list, m[i], fmt.Sprint(x*1.01), fmt.Sprint(x*0.99))
		case f.Name == "seed":
			list = append(list, m[i])
		default:
			if err != nil {
				t.Errorf("swagwrap %s --%s: want %s", command, f.Names()[0], f.Want())
			}
			list = append(list, fmt.Sprint(n-1), m[i], fmt.Sprint(n+1))
		}
	}
	if list == nil {
		t.Errorf("swagwrap %s --%s: has no bounds: want %s", command, f.Names()[0], f.Want())
	}
	return list
}

// A door is a program whose commands do nothing.
type door struct{ *cli.App }

func newDoor() door {
	env := &console.Env{Stdout: console.NewStdout(io.Discard), Stderr: io.Discard}
	d := door{newApp(env, func() {}).cli()}
	for _, cmd := range d.Commands {
		cmd.Action = func(*cli.Context) error { return flags.TableOf(cmd).Check() }
	}
	return d
}

// open parses a command line, and returns the error that comes before the command begins.
func (d door) open(args ...string) error {
	parsing.Lock()
	defer parsing.Unlock()
	return d.RunContext(context.Background(), flags.Anywhere(d.App, append([]string{"swagwrap"}, args...), flags.HelpWidth))
}

// A row of the table is a flag with the exit code for each number.
type numberRow struct {
	command, flag, text string
	values              []string
	codes               []string
}

func (r *numberRow) value(v string) string {
	if r.text == "%s" {
		return v
	}
	return fmt.Sprintf(r.text, v)
}

// Every flag that takes a number has bounds. The list of flags is that of the program, so a new one is tested too. A number
// out of bounds is a usage error, before the command begins.
func TestBadNumbers(t *testing.T) {
	d, started := newDoor(), map[string]bool{"adapt": true} // no number of the list is a block
	rows := numberRows(t, func(r *numberRow, f cli.Flag) {
		numbered := f.(*flags.Row).Want() != ""
		for _, v := range r.values {
			arg := "--" + r.flag + "=" + r.value(v)
			err := d.open(r.command, arg)
			code := console.ExitCode(t.Context(), err)
			r.codes = append(r.codes, fmt.Sprint(code))
			switch {
			case err == nil:
				started[r.flag] = true
			case code != 64:
				t.Errorf("swagwrap %s %s: exit code %d: %v", r.command, arg, code, err)
			case !numbered && strings.HasSuffix(err.Error(), " is empty"):
			case numbered && !strings.HasPrefix(err.Error(), "--"+r.flag+" ") || !strings.Contains(err.Error(), "want "):
				t.Errorf("swagwrap %s %s: %v, want --%s N: want A to B", r.command, arg, err, r.flag)
			}
		}
	})
	seen := map[string]bool{}
	for _, r := range rows {
		if seen[r.flag] = true; !started[r.flag] {
			t.Errorf("--%s: no number was taken", r.flag)
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d flags with numbers", len(seen))
	}
	printNumbers(t, rows)
	t.Log("64: refused before the command begins. 0: the command begins. -: only the command reads the number, which TestNumbersRun tests")
}

// printNumbers prints the table of flags and numbers with -v.
func printNumbers(t *testing.T, rows []*numberRow) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%-64s", "")
	for _, v := range badNumbers {
		fmt.Fprintf(&b, " %7s", cmp.Or(map[string]string{"9223372036854775807": "2^63-1", "1000000000000000000": "10^18", "": "empty"}[v], v))
	}
	b.WriteString("   at the bounds\n")
	for _, r := range rows {
		if r.codes == nil {
			continue
		}
		fmt.Fprintf(&b, "%-64s", fmt.Sprintf("%s --%s %s", r.command, r.flag, strings.ReplaceAll(strings.ReplaceAll(r.text, "%[1]s", "N"), "%s", "N")))
		for i, code := range r.codes {
			if i < len(badNumbers) {
				fmt.Fprintf(&b, " %7s", cmp.Or(code, "-"))
			} else {
				fmt.Fprintf(&b, "   %s: %s", r.values[i], cmp.Or(code, "-"))
			}
		}
		b.WriteByte('\n')
	}
	t.Logf("exit codes\n%s", b.String())
}

// numberRows returns the rows of the table for all commands. fill sets their codes.
func numberRows(t *testing.T, fill func(r *numberRow, f cli.Flag)) (rows []*numberRow) {
	for _, cmd := range newDoor().Commands {
		for _, f := range cmd.Flags {
			texts, around := numbersOf(t, cmd.Name, f)
			for _, text := range texts {
				r := &numberRow{command: cmd.Name, flag: f.Names()[0], text: text, values: append(slices.Clone(badNumbers), around...)}
				fill(r, f)
				rows = append(rows, r)
			}
		}
	}
	return rows
}
