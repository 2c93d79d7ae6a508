package setting

import (
	"strings"
	"sync/atomic"
)

// A Setting is one thing that a user chooses. Its text is the name of the program's flag, or the one letter that stands for it.
type Setting string

const (
	Adapt       Setting = "adapt"
	AdaptWeight Setting = "adapt-weight"
	AllTest     Setting = "all-test"
	Allow       Setting = "allow"
	Arrays      Setting = "arrays"
	Augment     Setting = "augment"
	Averages    Setting = "averages"
	BatchSize   Setting = "batch-size"
	BN          Setting = "bn"
	BNData      Setting = "bn-data"
	BNSamples   Setting = "bn-samples"
	By          Setting = "by"
	Calibration Setting = "calibration"
	Check       Setting = "check"
	Checkpoints Setting = "checkpoints"
	ClassAxis   Setting = "class-axis"
	ClassNames  Setting = "class-names"
	Columns     Setting = "columns"
	Coverage    Setting = "coverage"
	Deviations  Setting = "deviations"
	Device      Setting = "device"
	Ensemble    Setting = "ensemble"
	Expect      Setting = "expect"
	ExpectOnly  Setting = "expect-only"
	Extend      Setting = "extend"
	Features    Setting = "features"
	FileOrder   Setting = "file-order"
	IgnoreIndex Setting = "ignore-index"
	Iterates    Setting = "iterates"
	JSON        Setting = "json"
	KeepMembers Setting = "keep-members"
	Labels      Setting = "labels"
	LabelColumn Setting = "label-column"
	LabelsAs    Setting = "labels-as"
	Mean        Setting = "mean"
	Member      Setting = "member"
	Members     Setting = "members"
	Memory      Setting = "memory"
	Method      Setting = "method"
	Methods     Setting = "methods"
	Metrics     Setting = "metrics"
	NoGraph     Setting = "no-graph"
	NoiseStd    Setting = "noise-std"
	Order       Setting = "order"
	Output      Setting = "o"
	OutputName  Setting = "output-name"
	Pad         Setting = "pad"
	Parity      Setting = "parity"
	Portable    Setting = "portable"
	Posterior   Setting = "posterior"
	Precision   Setting = "precision"
	Preprocess  Setting = "preprocess"
	Probs       Setting = "probs"
	Provider    Setting = "provider"
	Rank        Setting = "rank"
	Quantize    Setting = "quantize"
	Reference   Setting = "reference"
	Report      Setting = "report"
	Role        Setting = "role"
	Runtime     Setting = "ort-lib"
	Scale       Setting = "scale"
	SaveBatch   Setting = "save-batch"
	Scores      Setting = "scores"
	Sets        Setting = "set"
	Shares      Setting = "shares"
	Settings    Setting = "settings"
	State       Setting = "state"
	StateDict   Setting = "state-dict"
	Storage     Setting = "storage"
	Store       Setting = "store"
	Targets     Setting = "targets"
	Task        Setting = "task"
	Template    Setting = "template"
	Text        Setting = "text"
	Theta0      Setting = "theta0"
	Last        Setting = "last"
	Threshold   Setting = "threshold"
	Tile        Setting = "tile"
	Tune        Setting = "tune"
	Unused      Setting = "unused"
	Val         Setting = "val"
	Verbose     Setting = "v"
)

// goNames are the names of options in Go that do not follow from the names of flags.
var goNames = map[Setting]string{
	BN:        "BN",
	BNData:    "BNData",
	BNSamples: "BNSamples",
	JSON:      "JSON",
	Output:    "Output",
	Runtime:   "Runtime",
	Sets:      "Sets",
	Verbose:   "Verbose",
}

// GoName returns the name of the option in Go, whoever speaks.
func (s Setting) GoName() string {
	if name, ok := goNames[s]; ok {
		return name
	}
	var b strings.Builder
	for word := range strings.SplitSeq(string(s), "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// String returns the setting as the user knows it.
func (s Setting) String() string {
	if spoken() == "" {
		return s.GoName()
	}
	return typed(string(s))
}

// With returns the setting with a value, or with a word in capitals that stands for one.
func (s Setting) With(value string) string { return s.String() + " " + value }

// Both returns two settings, as [Setting.With] or its String returns them, that a user sets together.
func Both(a, b string) string {
	if spoken() == "" {
		return a + " and " + b
	}
	return a + " " + b
}

var (
	program string                   // the name of the program of this process, or "" in a library
	typed   func(flag string) string // how its user types a flag
	used    atomic.Bool              // a word was made
)

// Speak makes all words those of a program, whose user types flags as flag returns them. A program calls it once, before it does
// anything else. Speak panics if a word was made already: a message would keep the words of a library.
func Speak(name string, flag func(name string) string) {
	if used.Load() {
		panic("setting: a word was made before the program spoke: make messages in functions, not in variables of packages")
	}
	program, typed = name, flag
}

// spoken returns the program for a word.
func spoken() string {
	used.Store(true)
	return program
}

// Line returns a command, as the methods of [Command] return it, in the form that a shell takes: with the program's
// name.
func Line(command string) string {
	if name := spoken(); name != "" {
		return name + " " + command
	}
	return command
}

// Quoted returns a command as [Line] does. A program's line is in backquotes, because it begins a sentence.
func Quoted(command string) string {
	if spoken() != "" {
		return "`" + Line(command) + "`"
	}
	return command
}
