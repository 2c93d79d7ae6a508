package programs

// Catalyst saves folders of checkpoints and its logs.
var _ = register(Program{
	Name:    "Catalyst",
	Files:   []string{"model.storage.json"},
	Figures: []Figures{{File: "valid.csv", Of: []string{"loss", "accuracy*"}}, {File: "logs/valid.csv", Of: []string{"loss", "accuracy*"}}},
})
