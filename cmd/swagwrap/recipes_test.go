package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/swag"
)

// A recipe is what fixtures/recipes/try.py recorded when it ran the Python of one of
// the recipes in docs/exporting.md.
type recipe struct {
	Heading    string `json:"heading"`
	SHA256     string `json:"sha256"` // of the blocks of Python
	Posteriors map[string]struct {
		Checkpoints int     `json:"checkpoints"`
		Squares     float64 `json:"squares"` // of their mean, summed
	} `json:"posteriors"`
}

// TestRecipes runs the commands of the recipes of docs/exporting.md on the files that
// their Python wrote. The Python itself was run by fixtures/recipes/try.py, and must not
// have changed since; the posteriors must be of the state_dicts that it says.
func TestRecipes(t *testing.T) {
	t.Parallel()
	page := readFile(t, "..", "..", "docs", "exporting.md")
	folder := absolute(t, "..", "..", "fixtures", "recipes")
	var recipes map[string]recipe
	if err := json.Unmarshal([]byte(readFile(t, folder, "tried.json")), &recipes); err != nil {
		t.Fatal(err)
	}
	scripts := t.TempDir()
	for name, r := range recipes {
		_, section, ok := strings.Cut(page, "\n### "+r.Heading+"\n")
		if !ok {
			t.Fatalf("docs/exporting.md has no section %q", r.Heading)
		}
		section, _, _ = strings.Cut(section, "\n##")
		sum := sha256.Sum256([]byte(strings.Join(blocks(section, "python"), "\n")))
		if hex.EncodeToString(sum[:]) != r.SHA256 {
			t.Errorf("the Python of %q is not what was tried: run fixtures/recipes/try.py %s", r.Heading, name)
		}
		commands := strings.Join(blocks(section, "sh"), "")
		if !strings.HasPrefix(commands, "swagwrap ") {
			t.Errorf("%q has no command", r.Heading)
		}
		script := "exec cp -R " + filepath.Join(folder, name) + "/. .\nexec sh -e commands.sh\n"
		for file, want := range r.Posteriors {
			script += fmt.Sprintf("posterior %s %d %v\n", file, want.Checkpoints, want.Squares)
		}
		if err := os.WriteFile(filepath.Join(scripts, name+".txtar"), []byte(script+"-- commands.sh --\n"+commands), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	runScripts(t, testscript.Params{Dir: scripts})
}

// blocks returns the blocks of a page that are in one language.
func blocks(page, language string) (all []string) {
	for i, block := range strings.Split("\n"+page, "\n```") {
		if code, ok := strings.CutPrefix(block, language+"\n"); ok && i%2 == 1 {
			all = append(all, code+"\n")
		}
	}
	return all
}

func readFile(t *testing.T, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ofPosterior is "posterior FILE CHECKPOINTS SQUARES" in a script: the file's posterior
// has so many checkpoints, and a mean of that squared length.
func ofPosterior(ts *testscript.TestScript, neg bool, args []string) {
	p, err := swag.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer p.Close()
	mean := make([]float64, p.Len())
	p.Mean(mean, 0)
	var squares, want float64
	for _, m := range mean {
		squares += m * m
	}
	_, err = fmt.Sscan(args[2], &want)
	ts.Check(err)
	if n := fmt.Sprint(len(p.Checkpoints)); n != args[1] || math.Abs(squares-want) > 1e-9*want {
		ts.Fatalf("%s: %s checkpoints, mean of squared length %v, want %s and %v", args[0], n, squares, args[1], want)
	}
}

// TestRefusals holds the messages that pages explain against those that the source has.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		page, heading string
		source        []string // folders
		least         int      // messages
	}{
		{"checkpoints.md", "What a refusal means", []string{"onnxio", "weights", "internal/open", "internal/programs"}, 10},
		{"faq.md", "Questions about files", []string{"onnxio", "calibrate", "internal"}, 9},
	} {
		_, table, ok := strings.Cut(readFile(t, "..", "..", "docs", tt.page), "\n## "+tt.heading+"\n")
		if !ok {
			t.Errorf("docs/%s has no heading %q", tt.page, tt.heading)
		}
		table, _, _ = strings.Cut(table, "\n##")
		var source strings.Builder
		for _, dir := range tt.source {
			err := fs.WalkDir(os.DirFS(filepath.Join("..", "..")), dir, func(path string, _ fs.DirEntry, err error) error {
				if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
					source.WriteString(broken.ReplaceAllString(readFile(t, "..", "..", path), ""))
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		explained := 0
		for row := range strings.Lines(table) {
			cells := strings.Split(row, " | ")
			if len(cells) != 3 {
				continue
			}
			for _, message := range regexp.MustCompile("`[^`]+`").FindAllString(cells[0], -1) {
				explained++
				for part := range strings.SplitSeq(strings.Trim(message, "`"), "…") {
					if part = strings.Trim(part, ` "`); !strings.Contains(source.String(), part) {
						t.Errorf("docs/%s: no message has %q", tt.page, part)
					}
				}
			}
		}
		if explained < tt.least {
			t.Errorf("docs/%s: %d messages explained", tt.page, explained)
		}
	}
}

// broken matches where a long string of the source goes on in the next line.
var broken = regexp.MustCompile(`" \+\n\s*"`)

// TestDeployTried: fixtures/deploy/try.py has run all code of docs/deploy.md and docs/fewer-bits.md as it stands, and the table of
// the first leads to it.
func TestDeployTried(t *testing.T) {
	t.Parallel()
	var tried map[string]struct {
		Heading string
		SHA256  map[string]string // by language
	}
	if err := json.Unmarshal([]byte(readFile(t, "..", "..", "fixtures", "deploy", "tried.json")), &tried); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{} // the part that has run a block
	for part, r := range tried {
		for language, sum := range r.SHA256 {
			want[strings.Join([]string{r.Heading, language, sum}, " ")] = part
		}
	}
	page := readFile(t, "..", "..", "docs", "deploy.md")
	sections := strings.Split(page, "\n## ")
	sections = append(sections, strings.Split(readFile(t, "..", "..", "docs", "fewer-bits.md"), "\n## ")...)
	block := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	seen, linked := map[string]bool{}, 0
	for _, section := range sections {
		heading, _, _ := strings.Cut(strings.TrimPrefix(section, "# "), "\n")
		blocks := block.FindAllStringSubmatch(section, -1)
		for _, m := range blocks {
			sum := sha256.Sum256([]byte(m[2]))
			key := strings.Join([]string{heading, m[1], hex.EncodeToString(sum[:])}, " ")
			if seen[key] = true; want[key] == "" {
				t.Errorf("section %q: try.py has not run this %s: run fixtures/deploy/try.py\n%s", heading, cmp.Or(m[1], "block without a language"), m[2])
			}
		}
		if strings.Contains("\n"+block.ReplaceAllString(section, ""), "\n    ") {
			t.Errorf("section %q has an indented block, which try.py does not run: want a fence and a language", heading)
		}
		if strings.Contains(page, "(#"+strings.ToLower(heading)+")") {
			if linked++; len(blocks) == 0 {
				t.Errorf("the table leads to %q, which has no code", heading)
			}
		}
	}
	for key, part := range want {
		if !seen[key] {
			t.Errorf("%s: tried.json has code that the pages no longer have", part)
		}
	}
	if linked < 7 {
		t.Errorf("the table leads to %d sections", linked)
	}
}

// TestFAQ: the script refusals.txtar provokes each refusal that docs/faq.md explains.
func TestFAQ(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(readFile(t, "..", "..", "docs", "faq.md"), "\n## The most common refusals\n")
	script := readFile(t, "testdata", "script", "refusals.txtar")
	messages := regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(table, -1)
	for _, m := range messages {
		begin, end, _ := strings.Cut(m[1], "…")
		if !regexp.MustCompile("(?m)^stderr '" + regexp.QuoteMeta(begin) + ".*" + regexp.QuoteMeta(end) + "'$").MatchString(script) {
			t.Errorf("refusals.txtar does not provoke %q", m[1])
		}
	}
	if want := strings.Count(script, "\nstderr "); len(messages) != want {
		t.Errorf("docs/faq.md explains %d refusals, want %d", len(messages), want)
	}
}

// TestDocumentedFlags: every command and flag that README.md and docs name exists.
func TestDocumentedFlags(t *testing.T) {
	t.Parallel()
	others := []string{"model-ema", "decay-rate", "checkpoint-hist", "mixup", "mixup-off-epoch", "array", "images"} // of timm, Slurm and fixtures/bench
	known, any := map[string]map[string]bool{}, map[string]bool{"help": true, "help-all": true}
	for _, c := range newApp(&console.Env{Stdout: console.NewStdout(io.Discard), Stderr: io.Discard}, func() {}).cli().Commands {
		known[c.Name] = map[string]bool{}
		for _, f := range c.Flags {
			for _, name := range f.Names() {
				known[c.Name][name], any[name] = true, true
			}
		}
	}
	command := regexp.MustCompile("(?m)(?:^|`|\\| |\\()swagwrap ([a-z]+)((?: +[^`#\n ]+)*)")
	long, alone := regexp.MustCompile(` (-[a-z]|--[a-z][a-z0-9-]+)\b`), regexp.MustCompile("`--([a-z][a-z0-9-]+)")
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, path := range append(pages, filepath.Join("..", "..", "README.md")) {
		page := readFile(t, path)
		for _, m := range command.FindAllStringSubmatch(page, -1) {
			if known[m[1]] == nil {
				continue // a sentence
			}
			commands++
			for _, f := range long.FindAllStringSubmatch(m[2], -1) {
				if !known[m[1]][strings.TrimLeft(f[1], "-")] {
					t.Errorf("%s: swagwrap %s has no flag %s", path, m[1], f[1])
				}
			}
		}
		for _, m := range alone.FindAllStringSubmatch(page, -1) {
			if !any[m[1]] && !slices.Contains(others, m[1]) {
				t.Errorf("%s: no command has a flag --%s", path, m[1])
			}
		}
	}
	if commands < 50 {
		t.Errorf("only %d commands were found", commands)
	}
}

// TestGuide runs the commands of the first pages of the guide, in a folder as they describe it.
func TestGuide(t *testing.T) {
	t.Parallel()
	script := `mkdir checkpoints
exec sh -c 'cp $FIXTURES/states/epoch-2?.pt $FIXTURES/states/epoch-30.pt $FIXTURES/model.onnx checkpoints'
cp $FIXTURES/states/epoch-30.pt final.pt
cp $FEW/test.npz test.npz
cp $FEW/test.npz new.npz
cp $FEW/val.npz val.npz
exec swagwrap fit -q -o one.safetensors --template checkpoints/model.onnx --task classes --preprocess 'mean=0.1307 std=0.3081' final.pt
exec swagwrap sample -q --method swa -o one-member.safetensors one.safetensors
exec swagwrap score -q -b 100 --save-batch checkpoints/batches.npy -o seen.csv one-member.safetensors $FEW/train.npz
exec sh -e commands.sh
exists result/NEXT.md result/ensemble.onnx predictions.csv report.html ensemble.onnx swagwrap-result/ensemble.onnx
-- commands.sh --
`
	for _, name := range []string{"start.md"} {
		n, code := 0, false
		for line := range strings.Lines(readFile(t, "..", "..", "docs", name)) {
			code = code != strings.HasPrefix(line, "```")
			if code && strings.HasPrefix(line, "swagwrap ") && !strings.Contains(line, "--sample") { // which try.txtar runs
				script += fewMembers(line)
				n++
			}
		}
		if n == 0 {
			t.Errorf("docs/%s has no commands", name)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "guide.txtar"), []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	runScripts(t, testscript.Params{Dir: dir})
}
