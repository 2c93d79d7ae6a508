package names

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/swagwrap/swagwrap/internal/numpy"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/internal/word"
)

// As says what texts such as 10 are: names of classes, or their numbers.
type As int

const (
	Auto    As = iota // as the texts and the known names tell
	Names             // names, also of folders: without known ones they have the order of the alphabet
	Numbers           // numbers, also of folders
)

var readings = []string{"auto", "names", "numbers"}

// String returns the word for a reading.
func (a As) String() string { return readings[a] }

// ParseAs is the inverse of [As.String].
func ParseAs(text string) (As, error) {
	i := slices.Index(readings, text)
	if i < 0 {
		return Auto, word.Check(text, readings...)
	}
	return As(i), nil
}

// Reading says how the labels of a file become numbers of classes.
type Reading struct {
	Known  []string // names of the classes 0, 1, 2 …; nil if nobody knows them
	From   string   // who says them; "" for the model card
	Count  int      // number of classes of the network; 0 if nobody knows it
	Binary bool     // class 1 is the positive one of two
	As     As
	Categories
}

// Categories are the texts of a column of categories, in the order of a file. If Ordered, someone chose this order.
type Categories struct {
	Order    []string
	Ordered  bool
	File     string // that has them, or ""
	Conflict string // how another file has another order, or ""
}

// Within reports whether all has the elements of some in their order, and perhaps more.
func Within(some, all []string) bool {
	for _, s := range all {
		if len(some) > 0 && some[0] == s {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// Label is the text of a class in a file.
type Label struct {
	Text   string
	Folder bool // the name of a class folder
}

// Resolved has the numbers of labels.
type Resolved struct {
	Numbers []int    // of each label
	Names   []string // of all classes, or nil
	// Rule says how the names got their numbers, and is "" if nothing was decided. Doubts are warnings.
	Rule   string
	Doubts []string
}

// resolving is the work on one file.
type resolving struct {
	Reading
	labels []Label
	where  func(k int) string
	out    Resolved
}

// Resolve returns the numbers of the labels of a file, which all are different. where returns the path of an example with
// label k.
func (r Reading) Resolve(labels []Label, where func(k int) string) (*Resolved, error) {
	x := &resolving{r, labels, where, Resolved{Numbers: make([]int, len(labels)), Names: r.Known}}
	if err := x.negative(); err != nil {
		return nil, err
	}
	if err := x.fractions(); err != nil {
		return nil, err
	}
	var err error
	if r.Known == nil {
		err = x.unknown()
	} else {
		err = x.known()
	}
	return &x.out, err
}

// negative refuses numbers below 0, which would otherwise be names.
func (x *resolving) negative() error {
	for k, v := range x.labels {
		if rest, minus := strings.CutPrefix(v.Text, "-"); minus && !v.Folder && !slices.Contains(x.Known, v.Text) {
			if _, ok := Number(rest); ok {
				return fmt.Errorf("%s: label %s, want a class from 0 up, or a name", x.where(k), v.Text)
			}
		}
	}
	return nil
}

// fractions refuses labels that all are numbers, and not all whole ones. They are targets of a regression, not classes.
func (x *resolving) fractions() error {
	first := -1
	for k, v := range x.labels {
		if _, err := strconv.ParseFloat(point(v.Text), 64); err != nil || v.Folder || x.As == Names || x.Known != nil {
			return nil
		}
		if _, ok := Number(v.Text); !ok && first < 0 {
			first = k
		}
	}
	if first < 0 {
		return nil
	}
	return fmt.Errorf("%s: label %s, want whole numbers from 0, or names: %w", x.where(first), x.labels[first].Text, ErrReading)
}

// unknown numbers labels for which nobody knows names. Texts are numbers if all are. Names of folders are not, unless it
// was given.
func (x *resolving) unknown() error {
	var named []string
	number, name := -1, -1
	for k, v := range x.labels {
		n, ok := Number(v.Text)
		switch {
		case x.As == Numbers && !ok:
			return fmt.Errorf("%s: class %q, want a number: %w", x.where(k), v.Text, ErrReading)
		case x.As == Numbers || ok && !v.Folder && x.As == Auto:
			x.out.Numbers[k] = n
			if number < 0 {
				number = k
			}
		default:
			if named = append(named, v.Text); name < 0 {
				name = k
			}
		}
	}
	if number >= 0 && name >= 0 {
		return fmt.Errorf("%s: class %s, a number, where others have names such as %q: want a list of class names that says which "+
			"number each has", x.where(number), x.labels[number].Text, x.labels[name].Text)
	}
	if name < 0 {
		return nil
	}
	if x.Conflict != "" {
		return fmt.Errorf("%s. If training had one of them%s", x.Conflict, InOrder())
	}
	if own := x.ownOrder(named); own != nil {
		x.number(own)
		x.out.Rule = "the classes have the order of the categories in the file: " + numbered(own)
		return nil
	}
	all, bytewise := sorted(named)
	if x.Count > 0 && len(all) != x.Count {
		return &CountError{Path: x.where(name), Names: all, Want: x.Count}
	}
	x.number(all)
	x.told(all, bytewise)
	return nil
}

// number gives the labels the numbers of their names in all.
func (x *resolving) number(all []string) {
	index := make(map[string]int, len(all))
	for i, s := range all {
		index[Key(s)] = i
	}
	for k, v := range x.labels {
		x.out.Numbers[k] = index[Key(v.Text)]
	}
	x.out.Names = all
}

// ownOrder returns the categories that the named labels have in the file, if they are as many as the classes of the network. Where
// that number is unknown, all of them count. It returns nil if there are none, or if nobody chose their order.
func (x *resolving) ownOrder(named []string) []string {
	if !x.Ordered || len(Places(x.Order)) != len(x.Order) {
		return nil
	}
	at, used := Places(x.Order), make([]bool, len(x.Order))
	for _, name := range named {
		i, ok := at[Key(name)]
		if !ok {
			return nil
		}
		used[i] = true
	}
	if x.Count == 0 || len(x.Order) == x.Count {
		return x.Order
	}
	var some []string
	for i, name := range x.Order {
		if used[i] {
			some = append(some, name)
		}
	}
	if len(some) != x.Count {
		return nil
	}
	return some
}

// told says how the names that were sorted got their numbers.
func (x *resolving) told(all []string, bytewise bool) {
	x.out.Rule = "the classes are numbered in the order of the alphabet, as by torchvision and scikit-learn: " + numbered(all)
	switch n, doubt := numbers(all), Ordered(all); {
	case doubt != "" && n != nil && slices.Max(n) < len(n):
		x.out.Doubts = append(x.out.Doubts, doubt+", say so: "+setting.LabelsAs.With("numbers"))
	case doubt != "":
		x.out.Doubts = append(x.out.Doubts, doubt+InOrder())
	}
	if off := x.otherOrder(all); off != "" {
		x.out.Doubts = append(x.out.Doubts, off)
	}
	if !bytewise {
		x.out.Doubts = append(x.out.Doubts, "the order of the class names depends on Unicode's form of their letters: they were "+
			"numbered in the form NFC. Training may have numbered them otherwise: "+numbered(all))
	}
	if x.Binary && len(all) == 2 && !usual(all) {
		x.out.Doubts = append(x.out.Doubts, fmt.Sprintf("class 1 is %q, and class 0 is %q: the order of the alphabet. If training had "+
			"%q as class 1, give the names in that order: %s", all[1], all[0], all[0], setting.Fit.With(setting.ClassNames.String())))
	}
}

// otherOrder returns a warning if the file has its categories in another order than that of the alphabet.
func (x *resolving) otherOrder(all []string) string {
	order, ok := Match(x.Order, all)
	if !ok || slices.IsSorted(order) {
		return ""
	}
	return "the file has its categories in another order, in which they may just occur: " +
		numbered(x.Order) + ". If training numbered the classes so" + InOrder()
}

// Ordered returns a warning if names, sorted by the alphabet, have numbers in another order, such as 1, 10, 2 or c1, c10, c2.
// What to do is to be added.
func Ordered(sorted []string) string {
	n, what := numbers(sorted), "are numbers"
	if n == nil {
		n, what = within(sorted), "have numbers"
	}
	if n == nil || slices.IsSorted(n) {
		return ""
	}
	rank := slices.Sorted(slices.Values(n))
	at := off(n, rank)
	return fmt.Sprintf("the names of the classes %s, and were numbered in the order of the alphabet, as torchvision's ImageFolder "+
		"numbers folders: %s. If class %s is the number %d", what, numbered(sorted), sorted[at], slices.Index(rank, n[at]))
}

// InOrder says what to do where the numbers in names are the order of training, but no numbers of classes.
func InOrder() string {
	return ", give a file with the names in the order of the numbers: " + setting.Fit.With(setting.ClassNames.With("FILE"))
}

// within returns the numbers of names that are equal but for one number, such as class_1 and class_10. It is nil for other
// names.
func within(list []string) (out []int) {
	const digits = "0123456789"
	front, behind := "", ""
	for i, name := range list {
		name = Key(name)
		at := strings.IndexAny(name, digits)
		if at < 0 {
			return nil
		}
		rest := strings.TrimLeft(name[at:], digits)
		n, err := strconv.Atoi(name[at : len(name)-len(rest)])
		if err != nil || strings.ContainsAny(rest, digits) || i > 0 && (name[:at] != front || rest != behind) {
			return nil
		}
		front, behind = name[:at], rest
		out = append(out, n)
	}
	return out
}

// off returns the first place where two lists of numbers differ, or −1. A nil list stands for 0, 1, 2 ….
func off(n, other []int) int {
	for i, v := range n {
		if other == nil && v != i || other != nil && v != other[i] {
			return i
		}
	}
	return -1
}

// numbered lists names with their numbers.
func numbered(all []string) string {
	const most = 12
	var out []string
	for i, s := range all[:min(len(all), most)] {
		out = append(out, fmt.Sprintf("%d %s", i, s))
	}
	if len(all) > most {
		out = append(out, fmt.Sprintf("and %d more", len(all)-most))
	}
	return strings.Join(out, ", ")
}

// usual reports whether two names are words for no and yes, in that order.
func usual(all []string) bool {
	for _, pair := range [][2]string{{"0", "1"}, {"no", "yes"}, {"false", "true"}, {"f", "t"}, {"n", "y"}, {"neg", "pos"},
		{"negative", "positive"}} {
		if strings.EqualFold(all[0], pair[0]) && strings.EqualFold(all[1], pair[1]) {
			return true
		}
	}
	return false
}

// known matches labels with the known names. Texts may be numbers instead, if all of them are.
func (x *resolving) known() error {
	byName := index(x.Known)
	var texts []int // the labels that are not folders
	unknown := &ClassError{Known: x.Known, From: x.From}
	for k, v := range x.labels {
		if !v.Folder {
			texts = append(texts, k)
			continue
		}
		n, ok := byName.find(v.Text)
		if x.As == Numbers {
			n, ok = Number(v.Text)
			ok = ok && n < len(x.Known)
		}
		switch {
		case !ok:
			unknown.add(x.where(k), v)
		case n == twice:
			return x.isTwice(k)
		}
		x.out.Numbers[k] = n
	}
	if err := x.texts(texts, byName, unknown); err != nil {
		return err
	}
	if len(unknown.Names) > 0 {
		unknown.missing(x.labels)
		return unknown
	}
	return nil
}

// texts reads the labels that are no folders, either all as names or all as numbers.
func (x *resolving) texts(texts []int, byName lookup, unknown *ClassError) error {
	named, number := make([]int, len(texts)), make([]int, len(texts))
	noName, noNumber, large := -1, -1, -1 // the first label of that kind
	some, neither := -1, false            // the first label that is a name
	for i, k := range texts {
		var isName, isNumber bool
		named[i], isName = byName.find(x.labels[k].Text)
		number[i], isNumber = Number(x.labels[k].Text)
		switch {
		case !isNumber && noNumber < 0:
			noNumber = i
		case isNumber && number[i] >= len(x.Known) && large < 0:
			large = i
		}
		if !isName && noName < 0 {
			noName = i
		}
		if isName && some < 0 {
			some = i
		}
		neither = neither || !isName && !isNumber
	}
	text := func(i int) string { return x.labels[texts[i]].Text }
	where := func(i int) string { return x.where(texts[i]) }
	asNumbers := x.As == Numbers
	if x.As == Auto {
		canNumber := noNumber < 0 && large < 0
		differ := off(named, number)
		switch {
		case noName < 0 && canNumber && differ >= 0:
			return &DoubtError{
				Path:   where(differ),
				Text:   text(differ),
				Name:   named[differ],
				Number: number[differ],
				Known:  x.Known,
				From:   x.From,
			}
		case noName >= 0 && noNumber < 0 && (canNumber || some < 0):
			asNumbers = true
		case noName >= 0 && !neither && some >= 0 && noNumber >= 0:
			return fmt.Errorf("%s: class %s is a number, and %q of %s is the name of a class: want one of the two for all labels: %w",
				where(noName), text(noName), text(some), where(some), ErrReading)
		}
	}
	if len(texts) > 0 && off(numbers(x.Known), nil) >= 0 {
		x.out.Rule = map[bool]string{
			true:  "labels are the numbers of classes, and not their names",
			false: "labels are the names of classes, and not their numbers",
		}[asNumbers]
	}
	if asNumbers {
		switch {
		case noNumber >= 0:
			return fmt.Errorf("%s: class %q, want a number: %w", where(noNumber), text(noNumber), ErrReading)
		case large >= 0:
			return fmt.Errorf("%s: class %d, and there are %d class names", where(large), number[large], len(x.Known))
		}
		named = number
	}
	for i, k := range texts {
		switch n := named[i]; n {
		case absent:
			unknown.add(x.where(k), x.labels[k])
		case twice:
			return x.isTwice(k)
		default:
			x.out.Numbers[k] = n
		}
	}
	return nil
}

func (x *resolving) isTwice(k int) error {
	return fmt.Errorf("%s: two classes are named %q: want another name, or numbers", x.where(k), x.labels[k].Text)
}

// lookup has the numbers of names.
type lookup struct {
	names   map[string]int
	numbers map[int]int // of names that are numbers, however they are written
}

const (
	twice  = -1 // ImageNet has two classes named crane
	absent = -2
)

func index(known []string) lookup {
	l := lookup{make(map[string]int, len(known)), map[int]int{}}
	for i, s := range known {
		key, at := Key(s), i
		if _, ok := l.names[key]; ok {
			at = twice
		}
		l.names[key] = at
		if n, ok := Number(s); ok {
			at = i
			if _, ok := l.numbers[n]; ok {
				at = twice
			}
			l.numbers[n] = at
		}
	}
	return l
}

// find returns the number of the class with that name, or absent.
func (l lookup) find(text string) (n int, ok bool) {
	if n, ok = l.names[Key(text)]; ok {
		return n, true
	}
	if v, isNumber := Number(text); isNumber {
		if n, ok = l.numbers[v]; ok {
			return n, true
		}
	}
	return absent, false
}

// list quotes names.
func list(all []string) string { return numpy.Quote(all) }

// Class is how messages name a class: by its name in quotes, or by its number if it has no name.
func Class(known []string, c int) string {
	if c < len(known) {
		return fmt.Sprintf("%q", known[c])
	}
	return fmt.Sprintf("class %d", c)
}
