package arch

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// typed finds what a user of the program types: a flag, or a command behind the program's name.
var typed = regexp.MustCompile(`(^|[^\pL\pN_-])--?[a-z]|^--$|\bswagwrap (calibrate|compare|completion|doctor|export|fit|geometry|inspect|list|merge|ood|sample|score|settle|setup|sweep|try)\b`)

// foreign are the texts that name flags of other programs, or that only look like a flag.
var foreign = []struct {
	file, whose string
	texts       []string
}{
	{"internal/ort/cuda.go", "nvidia-smi", []string{"--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"}},
	{"internal/packages/packages.go", "npm", []string{"--ignore-scripts", "--loglevel=error", "--fetch-retries=1"}},
	{"internal/packages/packages.go", "pip", []string{"--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--implementation", "--python-version", "--platform", "--dest"}},
	{"internal/packages/packages.go", "Python", []string{"-m"}},
	{"internal/ort/locate.go", "pip", []string{"`python -m pip install --force-reinstall 'onnxruntime>=%s'` installs it anew; or name another library with %s or %s"}},
	{"internal/ort/gpu.go", "vulkaninfo", []string{"the Vulkan driver may be too old: Mesa 25 or later is known to work. `vulkaninfo --summary` shows it; "}},
	{"internal/dataset/listing/spool.go", "the shell", []string{"-c"}},
	{"internal/kind/foreign.go", "Python", []string{"convert all checkpoints with the Python module, which reads them with their own library: python -m swagwrap.convert FOLDER converted. The graph for them is written by "}},
	{"internal/kind/foreign.go", "tar", []string{"it is a tar file with one set of weights. Unpack it into a folder of its own: mkdir NAME && tar -xf FILE -C NAME. The checkpoint is NAME/model_weights.ckpt. NeMo leaves one for each epoch in its folder checkpoints"}},
	{"internal/kind/foreign.go", "names of files", []string{"-of-"}},
	{"internal/tokenizer/pattern/parse.go", "regular expressions", []string{"-i"}},
	{"internal/report/plot/method.go", "names of figures", []string{"-close"}},
}

// No text below the commands names a flag or a command of the program. Package setting names them, as the reader knows
// them: a library has no flags.
func TestWords(t *testing.T) {
	found := map[string][]string{} // by file
	eachFile(t, belowCommands, func(path string, at func(token.Pos) int, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := constantText(e)
			if !ok {
				return true
			}
			if !typed.MatchString(text) {
				return false
			}
			found[path] = append(found[path], text)
			known := false
			for _, f := range foreign {
				known = known || f.file == path && slices.Contains(f.texts, text)
			}
			if !known {
				t.Errorf("%s:%d: %q names what a user of the program types: name it by package setting", path, at(e.Pos()), text)
			}
			return false
		})
	})
	for _, f := range foreign {
		for _, text := range f.texts {
			if !slices.Contains(found[f.file], text) {
				t.Errorf("%s no longer has %q of %s: shorten the list", f.file, text, f.whose)
			}
		}
	}
}

// constantText returns the value of a string, which may be written in several parts.
func constantText(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		first, ok := constantText(e.X)
		rest, too := constantText(e.Y)
		return first + rest, ok && too && e.Op == token.ADD
	}
	return "", false
}

// What TestWords looks for is what it should be.
func TestTyped(t *testing.T) {
	for text, want := range map[string]bool{
		"--memory SIZE allows more": true, "give more (--memory)": true, "-o": true, "`fit -v` says": true, "--": true, "x=--bn": true, "or:\n-q": true, "“--val”": true,
		"swagwrap inspect lists them": true, "run `swagwrap setup`": true,
		"-": false, "8-bit pixels": false, "/usr/lib/x86_64-linux-gnu": false, "mean-variance": false, "swagwrap.posterior": false, "swagwrap does": false, "--- FAIL": false, "T-1": false, "a -- b": false, "[-1, 1]": false,
	} {
		if got := typed.MatchString(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// A reader of the library's messages knows the names in them. Each setting is an exported name of a public package,
// except those of commands that the library does not have.
func TestWordsOfLibrary(t *testing.T) {
	exported, settings, commands := map[string]bool{}, map[string]bool{}, map[string]bool{}
	eachFile(t, []string{"internal/setting"}, func(_ string, _ func(token.Pos) int, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 {
				switch of, _ := v.Type.(*ast.Ident); {
				case of != nil && of.Name == "Setting":
					settings[v.Names[0].Name] = true
				case of != nil && of.Name == "Command":
					commands[v.Names[0].Name] = v.Names[0].Name != "Fit" // swag.Fit
				}
			}
			return true
		})
	})
	of := func(n ast.Node) string { // Name of setting.Name
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "setting" {
				return s.Sel.Name
			}
		}
		return ""
	}
	named := map[string]string{} // where, by name
	eachFile(t, belowCommands, func(path string, at func(token.Pos) int, file *ast.File) {
		if !slices.Contains(public, filepath.Dir(path)) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				for _, name := range n.Names {
					exported[name.Name] = true
				}
			case *ast.TypeSpec:
				exported[n.Name.Name] = true
			case *ast.CallExpr:
				if with, ok := n.Fun.(*ast.SelectorExpr); ok && commands[of(with.X)] {
					return false
				}
			}
			if name := of(n); settings[name] {
				named[name] = path + ":" + strconv.Itoa(at(n.Pos()))
			}
			return true
		})
	})
	for name, where := range named {
		if !exported[name] {
			t.Errorf("%s: %s is no name of a public package", where, name)
		}
	}
	if len(named) < 5 {
		t.Errorf("the public packages name %d settings, want 5 or more: does the test find them?", len(named))
	}
}
