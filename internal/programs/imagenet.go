package programs

// The example for ImageNet of PyTorch, and many scripts that began as a copy, keep one checkpoint and the best one.
var _ = register(Program{
	Name: "PyTorch's ImageNet example",
	Keys: []string{"arch", "state_dict", "best_acc1", "epoch"},
})
