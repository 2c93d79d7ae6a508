package programs

// Ignite keeps the engine and the network in one file. MONAI trains with Ignite, and its CheckpointSaver copies the last checkpoint.
var (
	_ = register(Program{
		Name: "Ignite",
		Keys: []string{"trainer/iteration"},
	})
	_ = register(Program{
		Name:  "MONAI",
		Files: []string{"*_epoch=*.pt", "*_final_iteration=*.pt"},
	})
)
