package console

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
)

// programName is the name by which a shell finds an installed program.
const programName = "swagwrap"

// typed returns commands of this program with the word that started it, for a shell in the same folder.
func (a *Env) typed(commands []string) (lines []string) {
	for _, line := range commands {
		if rest, ok := strings.CutPrefix(line, programName+" "); ok && a.Program != "" {
			line = Shell(a.Program) + " " + rest
		}
		lines = append(lines, line)
	}
	return lines
}

// Self returns the words that start this program in a shell, in any folder.
func (a *Env) Self() []string {
	installed, err := exec.LookPath(programName)
	if err != nil || !filepath.IsAbs(installed) { // a relative one is found in some folders only
		installed = ""
	}
	if python := os.Getenv("SWAGWRAP_PYTHON"); python != "" { // the Python package started this program
		if filepath.Dir(installed) == filepath.Dir(python) {
			return []string{programName}
		}
		return []string{python, "-m", programName}
	}
	self, err := os.Executable()
	if err != nil {
		return []string{a.Program}
	}
	if sameFile(installed, self) {
		return []string{programName}
	}
	if path := file.Absolute(a.Program); sameFile(path, self) { // the name by which it was started may be a link
		return []string{path}
	}
	return []string{self}
}

func sameFile(path, other string) bool {
	a, err1 := os.Stat(path)
	b, err2 := os.Stat(other)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}
