package programs

// pytorch_tabnet saves a zip of its settings and network.pt, which package statefile reads.
var _ = register(Program{
	Name:    "pytorch_tabnet",
	Keys:    []string{"model_params.json"},
	Classes: []string{"model_params.json/class_attrs/preds_mapper"},
})
