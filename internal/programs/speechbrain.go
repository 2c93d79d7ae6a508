package programs

// SpeechBrain keeps a file for each module, which package statefile joins.
var _ = register(Program{
	Name:    "SpeechBrain",
	Files:   []string{"CKPT.yaml"},
	Figures: []Figures{{File: "CKPT.yaml", Of: []string{"loss", "error", "error_rate", "WER", "CER", "PER", "ACC", "EER"}}},
})
