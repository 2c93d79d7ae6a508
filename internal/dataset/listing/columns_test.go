package listing

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/swagwrap/swagwrap/internal/target"
)

func TestFindColumns(t *testing.T) {
	for head, tt := range map[string]struct {
		printed Columns
		several bool
		want    string // path|labels|others
	}{
		"path,label":                   {Columns{}, false, "path|label|"},
		"image_id,label":               {Columns{}, false, "image_id|label|"},
		"id_code,diagnosis":            {Columns{}, false, "id_code|diagnosis|"},
		"Filename,Width,ClassId":       {Columns{}, false, "Filename|ClassId|Width"},
		"Path,Height,ClassId,image_id": {Columns{}, false, "Path|ClassId|Height image_id"},
		"file,diagnosis,label":         {Columns{}, false, "file|label|diagnosis"},
		"file,target,diagnosis":        {Columns{}, true, "file|target|diagnosis"},
		"file,label_0,label_1,x":       {Columns{}, true, "file|label_0 label_1|x"},
		"a,b,c":                        {Columns{}, false, "||a b c"},
		"a,b,c,label":                  {Columns{Path: "b", Labels: []string{"C"}}, false, "b|c|a label"},
		"image,progression,label":      {Columns{Labels: []string{"progression"}}, true, "image|progression|label"},
		"image,y1,y2":                  {Columns{Labels: []string{"y2", "y1"}}, true, "image|y2 y1|"},
		"x,y":                          {Columns{Labels: []string{"z"}}, false, `no column "z" among "x", "y": no such column`},
		"x,y,q":                        {Columns{Path: "z"}, false, `no column "z" among`},
		"x,y,r":                        {Columns{Labels: []string{"x", "y"}}, false, "2 columns of labels, want one"},
	} {
		names := strings.Split(head, ",")
		path, labels, others, err := tt.printed.Find(names, tt.several)
		pick := func(at []int) string {
			var out []string
			for _, i := range at {
				out = append(out, names[i])
			}
			return strings.Join(out, " ")
		}
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			if path >= 0 {
				got = names[path]
			}
			got += "|" + pick(labels) + "|" + pick(others)
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s: %s, want %s", head, got, tt.want)
		}
	}
}

// Lists as other programs write them: with semicolons, in UTF-16, with other headers, and without extensions.
func TestForeignLists(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.png", "b.png", "ä;1.png"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	wide := func(text string) string {
		b := []byte("\xff\xfe")
		for _, u := range utf16.Encode([]rune(text)) {
			b = binary.LittleEndian.AppendUint16(b, u)
		}
		return string(b)
	}
	for name, tt := range map[string]struct {
		text  string
		named Columns
		want  string
	}{
		"semicolons":               {"path;label\na.png;3\nb.png;1\n", Columns{}, "a.png=3 b.png=1"},
		"semicolons, GTSRB":        {"Filename;Width;Height;ClassId\na.png;29;30;2\nb.png;30;30;0\n", Columns{}, "a.png=2 b.png=0"},
		"semicolons, no header":    {"a.png;3\nb.png;1\n", Columns{}, "a.png=3 b.png=1"},
		"semicolons and quotes":    {"\"path\";\"label\"\n\"ä;1.png\";\"2\"\n", Columns{}, "ä;1.png=2"},
		"a semicolon in a path":    {"path,label\nä;1.png,2\n", Columns{}, "ä;1.png=2"},
		"tabs":                     {"path\tlabel\na.png\t3\n", Columns{}, "a.png=3"},
		"UTF-16":                   {wide("path,label\na.png,3\nä;1.png,1\n"), Columns{}, "a.png=3 ä;1.png=1"},
		"UTF-16 and semicolons":    {wide("path;label\r\na.png;3\r\n"), Columns{}, "a.png=3"},
		"identifiers":              {"image_id,label\na,3\nb,1\n", Columns{}, "a.png=3 b.png=1"},
		"identifiers of APTOS":     {"id_code,diagnosis\na,0\nb,4\n", Columns{}, "a.png=0 b.png=4"},
		"columns that are said":    {"x,y,label\na.png,7,5\n", Columns{Path: "x", Labels: []string{"y"}}, "a.png=7"},
		"a column that is missing": {"path,label\na.png,3\n", Columns{Labels: []string{"dx"}}, `no column "dx" among "path", "label"`},
	} {
		path := filepath.Join(dir, "list.csv")
		if err := os.WriteFile(path, []byte(tt.text), 0o666); err != nil {
			t.Fatal(err)
		}
		l, err := Read([]string{path}, Options{Target: target.Classes, Columns: tt.named})
		var got []string
		if err != nil {
			got = []string{err.Error()}
		} else {
			for i := range l.Len() {
				e := l.Example(i)
				got = append(got, filepath.Base(e.Path())+"="+l.labels[e.label].text)
				if _, release, _, _, err := e.Open(); err != nil {
					t.Errorf("%s: %v", name, err)
				} else {
					release()
				}
			}
		}
		if s := strings.Join(got, " "); s != tt.want && !(err != nil && strings.Contains(s, tt.want)) {
			t.Errorf("%s: %s, want %s", name, s, tt.want)
		}
	}
	if !slices.ContainsFunc([]string{"image_id", "Path"}, IsPathColumn) {
		t.Error("no path columns")
	}
}
