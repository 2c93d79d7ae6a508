package arch

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every page that a page, a message, a comment or a template names must exist, and so must the section behind its #.
func TestLinks(t *testing.T) {
	const root = "../.."
	var (
		markdown = regexp.MustCompile(`\]\(([^()\s:]*)\)`)                 // [text](target), without a scheme
		named    = regexp.MustCompile(`\bdocs/[a-z/-]+\.md(#[a-z0-9-]+)?`) // in Go, Python and shell, from the root
		heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
		marks    = regexp.MustCompile("[^a-z0-9 _-]")
	)
	anchors := map[string]map[string]bool{} // by page
	sections := func(page string) map[string]bool {
		if anchors[page] == nil {
			raw, err := os.ReadFile(filepath.Join(root, page))
			if err != nil {
				t.Fatal(err)
			}
			anchors[page] = map[string]bool{}
			for _, m := range heading.FindAllStringSubmatch(string(raw), -1) {
				anchors[page][strings.ReplaceAll(marks.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
			}
		}
		return anchors[page]
	}
	checked := 0
	check := func(file, target string) {
		page, section, _ := strings.Cut(target, "#")
		if _, err := os.Stat(filepath.Join(root, page)); err != nil {
			t.Errorf("%s: there is no %s", file, page)
		} else if section != "" && !sections(page)[section] {
			t.Errorf("%s: %s has no section #%s", file, page, section)
		}
		checked++
	}
	err := fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if name := d.Name(); err == nil && file != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin" || name == "dist") {
				return fs.SkipDir
			}
			return err
		}
		pattern := named
		switch path.Ext(file) {
		case ".md":
			pattern = markdown
		case ".go", ".py", ".sh", ".txtar":
		default:
			return nil
		}
		raw, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		for _, m := range pattern.FindAllStringSubmatch(string(raw), -1) {
			switch {
			case pattern == named:
				check(file, m[0])
			case strings.HasPrefix(m[1], "#"):
				check(file, file+m[1])
			default:
				check(file, path.Join(path.Dir(file), m[1]))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 100 {
		t.Errorf("only %d links were checked", checked)
	}
}
