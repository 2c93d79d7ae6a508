package programs

// Composer keeps its algorithms beside the network. Their flags mark averages: see package statefile.
var _ = register(Program{
	Name: "Composer",
	Keys: []string{"state/model", "rng"},
})
