package programs

// DeepSpeed, up to stage 2, keeps the network in one file of a folder for each step.
var _ = register(Program{
	Name: "DeepSpeed",
	Keys: []string{"ds_version", "module"},
})
