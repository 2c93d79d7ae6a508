package programs

// MMEngine is what MMPretrain and other packages of OpenMMLab train with. Its EMAHook exchanges the average and the iterate, and the
// file says so: see package statefile.
var _ = register(Program{
	Name:    "MMEngine",
	Keys:    []string{"meta", "message_hub"},
	Classes: []string{"meta/dataset_meta/classes", "meta/CLASSES"},
	Figures: []Figures{{File: "*/vis_data/scalars.json", Last: []string{}, Of: []string{"accuracy/*", "*/mAP", "*/mIoU"}}},
	// of EMAHook
	OfAverage: "ema_state_dict",
})
