package arch

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wings are the packages that the way from a checkpoint to a row does not need. The core imports none of them: a command hands
// what it takes from a wing to the core, as a value or through an interface of the core.
var wings = map[string][]string{
	"tokenizers":       {"internal/tokenizer", "internal/tokenizer/pattern"}, // text.Tokenizer
	"maps and montage": {"internal/maps", "internal/montage"},
	"installers":       {"internal/packages"}, // ort.Manager
	"hub":              {"internal/hub"},
	"web page":         {"internal/webpage", "internal/webpage/inputs"},
	"state_dicts":      {"internal/statedict"},
	"geometry":         {"swag/geometry", "internal/study/landscape"},
	"shift":            {"internal/study/shift", "internal/corrupt"}, // dataset.Damaged
	"out of domain":    {"internal/study/ood"},
	"sweep":            {"internal/study/sweep"},
	"settling":         {"internal/study/settling"},
}

// isProgram reports whether a package may use wings: a command, or a program of fixtures.
func isProgram(name string) bool {
	return strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "fixtures/")
}

// mostFiles is the largest number of files of commands that import one wing.
const mostFiles = 4

// Only programs and wings import wings. With -v the test says the lines of each package, without tests.
func TestWings(t *testing.T) {
	t.Parallel()
	wingOf, lines, users := map[string]string{}, map[string]int{}, map[string]map[string]bool{}
	for wing, packages := range wings {
		users[wing] = map[string]bool{}
		for _, name := range packages {
			wingOf[name] = wing
		}
	}
	for _, p := range listed(t) {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || name == "internal/arch" || strings.HasPrefix(name, "fixtures/") {
			continue
		}
		files, _ := filepath.Glob("../../" + name + "/*.go") // the pattern is good
		for _, path := range files {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			lines[name] += bytes.Count(content, []byte("\n"))
			for own, wing := range wingOf {
				if wingOf[name] == wing || !bytes.Contains(content, []byte("\""+module+"/"+own+"\"\n")) {
					continue
				}
				if users[wing][path] = true; !isProgram(name) && wingOf[name] == "" {
					t.Errorf("%s is of the core, and imports the wing %s: take what it needs through an interface", path, own)
				}
			}
		}
	}
	tell := func(what string, packages []string) (sum int) {
		for _, name := range packages {
			sum += lines[name]
		}
		t.Logf("%6d %s", sum, what)
		for _, name := range packages {
			t.Logf("       %6d %s", lines[name], name)
		}
		return sum
	}
	var core, program []string
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		if isProgram(name) {
			program = append(program, name)
		} else if wingOf[name] == "" {
			core = append(core, name)
		}
	}
	tell("core", core)
	for _, wing := range slices.Sorted(maps.Keys(wings)) {
		if n := len(users[wing]); tell("wing: "+wing, wings[wing]) == 0 || n == 0 || n > mostFiles {
			t.Errorf("wing %s: %d files import it, want 1 to %d: %v", wing, n, mostFiles, slices.Sorted(maps.Keys(users[wing])))
		}
	}
	tell("program", program)
}
