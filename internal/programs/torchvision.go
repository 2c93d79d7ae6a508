package programs

// The references of torchvision keep their arguments, and a moving average under model_ema.
var _ = register(Program{
	Name: "torchvision's references",
	Keys: []string{"model", "lr_scheduler", "args", "epoch"},
})
