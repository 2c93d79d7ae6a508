package programs

// Accelerate keeps folders of the network, the optimizer and the state of the random numbers. The user's own script measures.
var _ = register(Program{
	Name:  "Accelerate",
	Files: []string{"optimizer.bin", "random_states_0.pkl"},
})
