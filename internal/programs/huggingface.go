package programs

// The Trainer of Hugging Face also runs under PEFT, trl, SetFit and sentence-transformers. Its configuration files are read for any
// program: other ones write them, too.
var _ = register(Program{
	Name:  "the Hugging Face Trainer",
	Files: []string{"trainer_state.json"},
	Figures: []Figures{{
		File: "trainer_state.json",
		Last: []string{"log_history"},
		Of:   []string{"eval_loss", "eval_accuracy", "eval_f1", "eval_rmse"},
	}},
})
