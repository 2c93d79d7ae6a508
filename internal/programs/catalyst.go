package programs

// Catalyst saves folders of checkpoints and its logs. Before version 22 it had other files.
var _, _ = register(catalyst("model.storage.json")), register(catalyst("_metrics.json"))

func catalyst(list string) Program {
	of := []string{"loss", "accuracy*"}
	return Program{
		Name:    "Catalyst",
		Files:   []string{list},
		Figures: []Figures{{File: "valid.csv", Of: of}, {File: "logs/valid.csv", Of: of}},
	}
}
