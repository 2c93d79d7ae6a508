package programs

// skorch keeps the weights, the optimizer and the criterion in files of their own, and its history.
var _ = register(Program{
	Name:    "skorch",
	Files:   []string{"history.json", "*params*.pt"},
	Figures: []Figures{{File: "history.json", Last: []string{}, Of: []string{"valid_loss", "valid_acc"}}},
})
