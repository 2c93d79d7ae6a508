package names

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func texts(all ...string) (out []Label) {
	for _, s := range all {
		text, folder := strings.CutSuffix(s, "/")
		out = append(out, Label{text, folder})
	}
	return out
}

// Labels become numbers by their names, all in one way. Otherwise an error names the doubt.
func TestResolve(t *testing.T) {
	animals := []string{"cat", "dog", "owl"}
	for _, tt := range []struct {
		name   string
		r      Reading
		labels []Label
		want   string // the numbers, or an error
		rule   string // a part of the rule
		doubt  string
	}{
		{"alphabet", Reading{Count: 3}, texts("owl", "cat", "dog"), "[2 0 1]", "0 cat, 1 dog, 2 owl", ""},
		{"numbers", Reading{Count: 3}, texts("2", "2.0", "02", "0"), "[2 2 2 0]", "", ""},
		{"numbers, unknown count", Reading{}, texts("7"), "[7]", "", ""},
		{"half", Reading{}, texts("2", "2.5"), "example 1: label 2.5, want whole numbers from 0, or names", "", ""},
		{"versions", Reading{As: Names}, texts("2.5", "10.5"), "[1 0]", "0 10.5, 1 2.5", ""},
		{"negative", Reading{}, texts("-1", "0"), "label -1, want a class from 0 up", "", ""},
		{"mixed", Reading{}, texts("cat", "3"), `class 3, a number, where others have names such as "cat"`, "", ""},
		{"too few", Reading{Count: 3}, texts("cat", "dog"), "the data has 2 class names and the network 3 classes", "", ""},
		{"too many", Reading{Count: 1}, texts("cat", "dog"), "the data has 2 class names and the network 1 classes", "", ""},
		{"too few, numbers", Reading{Count: 3}, texts("0", "1"), "[0 1]", "", ""},
		{"folders by the alphabet", Reading{Count: 4}, texts("0/", "1/", "10/", "2/"), "[0 1 2 3]", "0 0, 1 1, 2 10, 3 2", "ImageFolder"},
		{"folders from 1", Reading{Count: 3}, texts("1/", "2/", "10/"), "[0 2 1]", "0 1, 1 10, 2 2", "If class 10 is the number 2, give a file with the names"},
		{"all numbers are classes", Reading{Count: 11}, texts("0/", "1/", "10/", "2/", "3/", "4/", "5/", "6/", "7/", "8/", "9/"), "[0 1 2 3 4 5 6 7 8 9 10]", "2 10, 3 2", "If class 10 is the number 10, say so"},
		{"numbers in names", Reading{Count: 3}, texts("class_1", "class_2", "class_10"), "[0 2 1]", "1 class_10", "If class class_10 is the number 2, give a file"},
		{"numbers in front", Reading{Count: 3}, texts("1st/", "2st/", "10st/"), "[1 2 0]", "0 10st", "If class 10st is the number 2, give a file"},
		{"numbers in names, in order", Reading{Count: 3}, texts("c01/", "c02/", "c10/"), "[0 1 2]", "0 c01", ""},
		{"decimal commas", Reading{Count: 11}, texts("10,0", "2,0", "0,00"), "[10 2 0]", "", ""},
		{"fractions with commas", Reading{Count: 3}, texts("1,0", "2,5", "0,0"), "label 2,5, want whole numbers", "", ""},
		{"folders in both orders", Reading{Count: 3}, texts("0/", "1/", "2/"), "[0 1 2]", "", ""},
		{"folders are numbers", Reading{Count: 11, As: Numbers}, texts("0/", "10/", "2/"), "[0 10 2]", "", ""},
		{"folders are no numbers", Reading{As: Numbers}, texts("cat/"), `class "cat", want a number`, "", ""},
		{"texts are names", Reading{Count: 3, As: Names}, texts("1", "10", "2"), "[0 1 2]", "0 1, 1 10, 2 2", "ImageFolder"},
		{"known", Reading{Known: animals}, texts("owl", "cat"), "[2 0]", "", ""},
		{"known, folders", Reading{Known: animals}, texts("owl/", "cat/"), "[2 0]", "", ""},
		{"known, as numbers", Reading{Known: animals}, texts("2", "0.0"), "[2 0]", "", ""},
		{"unknown", Reading{Known: animals, From: "val.csv"}, texts("owl", "fox"), `class "fox" is not among the 3 class names of val.csv: "cat", "dog", "owl"; of these, no example here has "cat", "dog"`, "", ""},
		{"unknown folders", Reading{Known: animals}, texts("0/"), `class "0" is not among the 3 class names`, "", ""},
		{"names and numbers", Reading{Known: animals}, texts("owl", "1"), `class 1 is a number, and "owl" of example 0 is the name of a class`, "", ""},
		{"too large", Reading{Known: animals}, texts("0", "3"), "class 3, and there are 3 class names", "", ""},
		{"twice", Reading{Known: []string{"crane", "crane"}}, texts("crane"), `two classes are named "crane"`, "", ""},
		{"twice, by number", Reading{Known: []string{"crane", "crane"}}, texts("1"), "[1]", "", ""},
		{"both readings are equal", Reading{Known: []string{"0", "1", "2"}}, texts("1", "2.0"), "[1 2]", "", ""},
		{"both readings", Reading{Known: []string{"0", "1", "10", "2"}}, texts("2", "1"), "label 2 is the name of class 3, and the number of class 2", "", ""},
		{"both readings, names", Reading{Known: []string{"0", "1", "10", "2"}, As: Names}, texts("2", "1"), "[3 1]", "labels are the names", ""},
		{"both readings, numbers", Reading{Known: []string{"0", "1", "10", "2"}, As: Numbers}, texts("2", "1"), "[2 1]", "labels are the numbers", ""},
		{"names are numbers", Reading{Known: []string{"10", "20", "30"}}, texts("20", "30.0"), "[1 2]", "labels are the names", ""},
		{"names are numbers, unknown", Reading{Known: []string{"10", "20", "30"}}, texts("20", "40"), `class "40" is not among`, "", ""},
		{"numbers beside names from 1", Reading{Known: []string{"1", "2", "3"}}, texts("0", "1", "2"), "[0 1 2]", "labels are the numbers", ""},
		{"names from 1", Reading{Known: []string{"1", "2", "3"}}, texts("1", "2", "3"), "[0 1 2]", "labels are the names", ""},
		{"binary", Reading{Count: 2, Binary: true}, texts("malignant", "benign"), "[1 0]", "0 benign, 1 malignant", `class 1 is "malignant"`},
		{"binary, usual", Reading{Count: 2, Binary: true}, texts("Yes", "No"), "[1 0]", "0 No, 1 Yes", ""},
		{"spaces", Reading{Known: animals}, texts(" dog "), "[1]", "", ""},
	} {
		found, err := tt.r.Resolve(tt.labels, func(k int) string { return fmt.Sprint("example ", k) })
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(found.Numbers)
		}
		if err == nil && got != tt.want || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if err != nil {
			continue
		}
		if tt.rule != "" && !strings.Contains(found.Rule, tt.rule) {
			t.Errorf("%s: rule %q, want %q in it", tt.name, found.Rule, tt.rule)
		}
		if doubts := strings.Join(found.Doubts, "\n"); (doubts == "") != (tt.doubt == "") || !strings.Contains(doubts, tt.doubt) {
			t.Errorf("%s: doubts %q, want %q", tt.name, doubts, tt.doubt)
		}
	}
}

// Unicode's forms are one name, and do not change the order.
func TestForms(t *testing.T) {
	all := []string{"école", "zèbre", "été", "aigle"}
	var first []int
	for form := range 1 << len(all) {
		var labels []Label
		for i, s := range all {
			if form>>i&1 > 0 {
				s = norm.NFD.String(s)
			}
			labels = append(labels, Label{s, true})
		}
		for _, r := range []Reading{{Count: 4}, {Known: all}} {
			found, err := r.Resolve(labels, func(int) string { return "" })
			if err != nil {
				t.Fatal(err)
			}
			if r.Known == nil && first == nil {
				first = found.Numbers
			}
			if want := map[bool][]int{true: first, false: {0, 1, 2, 3}}[r.Known == nil]; !slices.Equal(found.Numbers, want) {
				t.Errorf("form %b: %v, want %v", form, found.Numbers, want)
			}
		}
	}
	twins, err := Reading{Count: 1}.Resolve([]Label{{"é", true}, {norm.NFD.String("é"), true}}, func(int) string { return "" })
	if err != nil || !slices.Equal(twins.Numbers, []int{0, 0}) || len(twins.Names) != 1 {
		t.Errorf("both forms of a name: %v, %v", twins, err)
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]int{"3": 3, "03": 3, "3.0": 3, "3.": 3, "0": 0, " 12 ": 12, "12.000": 12,
		"": -1, ".": -1, ".0": -1, "3.5": -1, "1e3": -1, "-1": -1, "+1": -1, "0x3": -1, "1_000": -1, "3.0.0": -1, "n01440764": -1, "99999999999999999999": -1, "nan": -1} {
		got, ok := Number(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func TestErrReading(t *testing.T) {
	for _, r := range []Reading{{Known: []string{"1", "0"}}, {Count: 3, As: Names}, {As: Numbers, Known: []string{"a"}}} {
		labels := map[As][]Label{Auto: texts("1"), Names: texts("1", "2"), Numbers: texts("a")}[r.As]
		if _, err := r.Resolve(labels, func(int) string { return "" }); !errors.Is(err, ErrReading) {
			t.Errorf("%+v: %v, want an error that can be answered", r, err)
		}
	}
}

// Columns are matched by name, or have the order of their numbers, or are refused.
func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    Columns
		have []string
		want string
	}{
		{"known", Columns{Known: []string{"b", "a", "é"}, From: "train.csv"}, []string{norm.NFD.String("é"), "a", "b"}, "[2 1 0]"},
		{"missing", Columns{Known: []string{"b", "a"}, From: "train.csv"}, []string{"a", "c"}, `columns "a", "c", want those of train.csv: "b", "a"; missing: "b"; unknown: "c"`},
		{"other names of one", Columns{Known: []string{"ids"}}, []string{"tokens"}, "[0]"},
		{"as in the file", Columns{}, []string{"b", "a", "c"}, "[0 1 2]"},
		{"numbers", Columns{Input: "x"}, []string{"x_0", "x_1", "x_10"}, "[0 1 2]"},
		{"numbers of the input", Columns{Input: "x"}, []string{"x_10", "x_1", "x_0"}, "[2 1 0]"},
		{"numbers of something else", Columns{Input: "x"}, []string{"f0", "f10", "f2"}, "nobody says"},
		{"twice", Columns{Input: "x"}, []string{"x_1", "x_01"}, "[0 1]"},
	} {
		order, _, err := tt.c.Order(tt.have)
		got := fmt.Sprint(order)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	for _, tt := range []struct {
		name string
		t    Targets
		have []string
		want string
	}{
		{"known", Targets{Known: []string{"y_b", "y_a"}}, []string{"y_a", "y_b"}, "[1 0]"},
		{"known without what is in front", Targets{Known: []string{"label_b", "label_a"}}, []string{"a", "b"}, "[1 0]"},
		{"other", Targets{Known: []string{"b", "a"}, From: "val.csv"}, []string{"a", "c"}, "want those of val.csv"},
		{"card", Targets{Classes: []string{"cat", "dog"}}, []string{"label_dog", "label_cat"}, "[1 0]"},
		{"part of the card", Targets{Classes: []string{"cat", "dog"}}, []string{"dog", "fox"}, "want those of the model card"},
		{"numbers", Targets{Classes: []string{"cat", "dog"}}, []string{"label_1", "label_0"}, "[1 0]"},
		{"numbers alone", Targets{}, []string{"target_1", "target_0"}, "[1 0]"},
		{"as in the file", Targets{}, []string{"b", "a"}, "[0 1]"},
	} {
		order, _, err := tt.t.Order(tt.have)
		got := fmt.Sprint(order)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("targets, %s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A class without a name has its number. A name may be a number, so quotes distinguish the two.
func TestClass(t *testing.T) {
	for _, tt := range []struct {
		known []string
		c     int
		want  string
	}{{nil, 3, "class 3"}, {[]string{"cat", "7"}, 0, `"cat"`}, {[]string{"cat", "7"}, 1, `"7"`}, {[]string{"cat"}, 1, "class 1"}, {[]string{"a\nb"}, 0, `"a\nb"`}} {
		if got := Class(tt.known, tt.c); got != tt.want {
			t.Errorf("class %d of %q: %s, want %s", tt.c, tt.known, got, tt.want)
		}
	}
}

// Files may have a part of the categories. Other orders are asked about.
func TestCategoriesOfFiles(t *testing.T) {
	for _, tt := range []struct {
		some, all []string
		want      bool
	}{
		{[]string{"b", "a"}, []string{"b", "c", "a"}, true},
		{[]string{"a", "b"}, []string{"b", "c", "a"}, false},
		{[]string{"d"}, []string{"b", "c", "a"}, false},
		{nil, []string{"b"}, true},
	} {
		if got := Within(tt.some, tt.all); got != tt.want {
			t.Errorf("%q within %q: %v", tt.some, tt.all, got)
		}
	}
	r := Reading{Categories: Categories{Order: []string{"b", "a"}, Ordered: true, Conflict: "x has them otherwise"}}
	at := func(int) string { return "f" }
	if _, err := r.Resolve([]Label{{Text: "a"}, {Text: "b"}}, at); err == nil || !strings.Contains(err.Error(), "in the order of the numbers") {
		t.Errorf("error %v, want one that says what to type", err)
	}
	r.Known = []string{"a", "b"}
	if _, err := r.Resolve([]Label{{Text: "a"}, {Text: "b"}}, at); err != nil {
		t.Error(err)
	}
}
