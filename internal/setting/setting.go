package setting

// A Setting is one thing that a user chooses. Its constant has the name of the option in Go.
type Setting uint8

const (
	Adapt Setting = iota
	AdaptWeight
	AllTest
	Allow
	Antithetic
	Arrays
	Augment
	Averages
	BatchSize
	BN
	BNData
	BNSamples
	By
	Check
	Checkpoints
	ClassAxis
	ClassNames
	Columns
	Coverage
	Deviations
	Device
	Ensemble
	Extend
	Features
	FileOrder
	IgnoreIndex
	Iterates
	JSON
	KeepMembers
	Labels
	LabelColumn
	LabelsAs
	Mean
	Member
	Members
	Memory
	Method
	Methods
	Metrics
	NoiseStd
	Order
	Output
	OutputName
	Pad
	Parity
	Posterior
	Precision
	Preprocess
	Probs
	Provider
	Rank
	Reference
	Report
	Role
	Runtime
	SaveBatch
	Scores
	Sets
	Settings
	State
	StateDict
	Store
	Targets
	Task
	Template
	Text
	Theta0
	Threshold
	Tile
	Tune
	Unused
	Val
	Verbose
	settings // the number of settings
)

// names are the names of options in Go.
var names = [settings]string{
	Adapt:       "Adapt",
	AdaptWeight: "AdaptWeight",
	AllTest:     "AllTest",
	Allow:       "Allow",
	Antithetic:  "Antithetic",
	Arrays:      "Arrays",
	Augment:     "Augment",
	Averages:    "Averages",
	BatchSize:   "BatchSize",
	BN:          "BN",
	BNData:      "BNData",
	BNSamples:   "BNSamples",
	By:          "By",
	Check:       "Check",
	Checkpoints: "Checkpoints",
	ClassAxis:   "ClassAxis",
	ClassNames:  "ClassNames",
	Columns:     "Columns",
	Coverage:    "Coverage",
	Deviations:  "Deviations",
	Device:      "Device",
	Ensemble:    "Ensemble",
	Extend:      "Extend",
	Features:    "Features",
	FileOrder:   "FileOrder",
	IgnoreIndex: "IgnoreIndex",
	Iterates:    "Iterates",
	JSON:        "JSON",
	KeepMembers: "KeepMembers",
	Labels:      "Labels",
	LabelColumn: "LabelColumn",
	LabelsAs:    "LabelsAs",
	Mean:        "Mean",
	Member:      "Member",
	Members:     "Members",
	Memory:      "Memory",
	Method:      "Method",
	Methods:     "Methods",
	Metrics:     "Metrics",
	NoiseStd:    "NoiseStd",
	Order:       "Order",
	Output:      "Output",
	OutputName:  "OutputName",
	Pad:         "Pad",
	Parity:      "Parity",
	Posterior:   "Posterior",
	Precision:   "Precision",
	Preprocess:  "Preprocess",
	Probs:       "Probs",
	Provider:    "Provider",
	Rank:        "Rank",
	Reference:   "Reference",
	Report:      "Report",
	Role:        "Role",
	Runtime:     "Runtime",
	SaveBatch:   "SaveBatch",
	Scores:      "Scores",
	Sets:        "Sets",
	Settings:    "Settings",
	State:       "State",
	StateDict:   "StateDict",
	Store:       "Store",
	Targets:     "Targets",
	Task:        "Task",
	Template:    "Template",
	Text:        "Text",
	Theta0:      "Theta0",
	Threshold:   "Threshold",
	Tile:        "Tile",
	Tune:        "Tune",
	Unused:      "Unused",
	Val:         "Val",
	Verbose:     "Verbose",
}

// All returns all settings.
func All() []Setting {
	all := make([]Setting, settings)
	for i := range all {
		all[i] = Setting(i)
	}
	return all
}

// GoName returns the name of the option in Go, whatever vocabulary is spoken.
func (s Setting) GoName() string { return names[s] }

// String returns the setting as the user knows it.
func (s Setting) String() string {
	if word, ok := spoken().Settings[s]; ok {
		return word
	}
	return names[s]
}

// With returns the setting with a value, or with a word in capitals that stands for one.
func (s Setting) With(value string) string { return s.String() + " " + value }

// Both returns two settings, as [Setting.With] or its String returns them, that a user sets together.
func Both(a, b string) string {
	if spoken().Program == "" {
		return a + " and " + b
	}
	return a + " " + b
}
