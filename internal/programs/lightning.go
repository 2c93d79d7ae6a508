package programs

// Lightning also runs pytorch-tabular, chemprop and darts. Its averages are marked in the files: see package statefile.
var _ = register(Program{
	Name:     "Lightning",
	Keys:     []string{"pytorch-lightning_version", "state_dict"},
	Settings: []string{"hparams.yaml"},
	Classes:  []string{"hyper_parameters/class_names", "hyper_parameters/classes", "class_names", "classes"},
	Figures:  []Figures{{File: "metrics.csv", Of: []string{"val*"}}},
	// of EMAWeightAveraging
	OfAverage: "current_model_state",
})
