package programs

import (
	"fmt"
	"slices"
	"strings"
)

// programs are the training programs that are known. Of two that a folder shows, the first counts.
var programs = []*Program{
	// Accelerate keeps folders of the network, the optimizer and the state of the random numbers. The user's own script measures.
	{
		Name:  "Accelerate",
		Files: []string{"optimizer.bin", "random_states_0.pkl"},
	},
	// Catalyst saves folders of checkpoints and its logs. Before version 22 it had other files.
	{
		Name:    "Catalyst",
		Files:   []string{"model.storage.json"},
		Figures: ofCatalyst,
	},
	{
		Name:    "Catalyst",
		Files:   []string{"_metrics.json"},
		Figures: ofCatalyst,
	},
	// Composer keeps its algorithms beside the network. Their flags mark averages: see package statefile.
	{
		Name: "Composer",
		Keys: []string{"state/model", "rng"},
	},
	// DeepSpeed, up to stage 2, keeps the network in one file of a folder for each step.
	{
		Name: "DeepSpeed",
		Keys: []string{"ds_version", "module"},
	},
	// The Trainer of Hugging Face also runs under PEFT, trl, SetFit and sentence-transformers. Its configuration files are read for any
	// program: other ones write them, too.
	{
		Name:  "the Hugging Face Trainer",
		Files: []string{"trainer_state.json"},
		Figures: []Figures{{
			File: "trainer_state.json",
			Last: []string{"log_history"},
			Of:   []string{"eval_loss", "eval_accuracy", "eval_f1", "eval_rmse"},
		}},
	},
	// Ignite keeps the engine and the network in one file. MONAI trains with Ignite, and its CheckpointSaver copies the last checkpoint.
	{
		Name: "Ignite",
		Keys: []string{"trainer/iteration"},
	},
	{
		Name:  "MONAI",
		Files: []string{"*_epoch=*.pt", "*_final_iteration=*.pt"},
	},
	// The example for ImageNet of PyTorch, and many scripts that began as a copy, keep one checkpoint and the best one.
	{
		Name: "PyTorch's ImageNet example",
		Keys: []string{"arch", "state_dict", "best_acc1", "epoch"},
	},
	// Lightning also runs pytorch-tabular, chemprop and darts. Its averages are marked in the files: see package statefile.
	{
		Name:     "Lightning",
		Keys:     []string{"pytorch-lightning_version", "state_dict"},
		Settings: []string{"hparams.yaml"},
		Classes:  []string{"hyper_parameters/class_names", "hyper_parameters/classes", "class_names", "classes"},
		Figures:  []Figures{{File: "metrics.csv", Of: []string{"val*"}}},
		// of EMAWeightAveraging
		OfAverage: "current_model_state",
	},
	// MMEngine is what MMPretrain and other packages of OpenMMLab train with. Its EMAHook exchanges the average and the iterate, and the
	// file says so: see package statefile.
	{
		Name:    "MMEngine",
		Keys:    []string{"meta", "message_hub"},
		Classes: []string{"meta/dataset_meta/classes", "meta/CLASSES"},
		Figures: []Figures{{File: "*/vis_data/scalars.json", Last: []string{}, Of: []string{"accuracy/*", "*/mAP", "*/mIoU"}}},
		// of EMAHook
		OfAverage: "ema_state_dict",
	},
	// skorch keeps the weights, the optimizer and the criterion in files of their own, and its history.
	{
		Name:    "skorch",
		Files:   []string{"history.json", "*params*.pt"},
		Figures: []Figures{{File: "history.json", Last: []string{}, Of: []string{"valid_loss", "valid_acc"}}},
	},
	// SpeechBrain keeps a file for each module, which package statefile joins.
	{
		Name:    "SpeechBrain",
		Files:   []string{"CKPT.yaml"},
		Figures: []Figures{{File: "CKPT.yaml", Of: []string{"loss", "error", "error_rate", "WER", "CER", "PER", "ACC", "EER"}}},
	},
	// pytorch_tabnet saves a zip of its settings and network.pt, which package statefile reads.
	{
		Name:    "pytorch_tabnet",
		Keys:    []string{"model_params.json"},
		Classes: []string{"model_params.json/class_attrs/preds_mapper"},
	},
	// timm is its train.py, which writes its arguments, and a row of figures an epoch.
	{
		Name:      "timm",
		Keys:      []string{"arch", "args/model_kwargs"},
		Files:     []string{"args.yaml", "summary.csv"},
		Settings:  []string{"args.yaml"},
		Figures:   []Figures{{File: "summary.csv", Of: []string{"eval_loss", "eval_top1", "eval_top5"}}},
		OfAverage: "state_dict_ema",
		Preprocess: func(v map[string]any) (words string, unsaid []string) {
			if args, ok := v["args"].(map[string]any); ok { // in a checkpoint
				v = args
			}
			// What is not given is the network's own configuration, which is in no file of the run, as the crop of 0.95 of many networks.
			mean, std, crop := numbersOf(v["mean"]), numbersOf(v["std"]), numbersOf(v["crop_pct"])
			how, _ := v["interpolation"].(string)
			size := numbersOf(v["img_size"])
			if given := numbersOf(v["input_size"]); len(given) == 3 { // channels, height, width
				size = given[1:]
			}
			for key, given := range map[string]bool{
				"mean":          len(mean) > 0,
				"std":           len(std) > 0,
				"img_size":      len(size) > 0,
				"crop_pct":      len(crop) == 1,
				"interpolation": how != "",
			} {
				if !given {
					unsaid = append(unsaid, key)
				}
			}
			if unsaid != nil {
				if name, _ := v["model"].(string); name == "" {
					return "", nil // of another program
				}
				slices.Sort(unsaid)
				return "", unsaid
			}
			return fmt.Sprintf("input-size=%s mean=%s std=%s crop-pct=%v interpolation=%s",
				joined(size, "x"), joined(mean, ","), joined(std, ","), crop[0], how), nil
		},
		Resolve: func(file string) string {
			args := fmt.Sprintf("import torch; a = vars(torch.load(%q, weights_only=False)[\"args\"])", file)
			if strings.HasSuffix(file, ".yaml") {
				args = fmt.Sprintf("import yaml; a = yaml.safe_load(open(%q))", file)
			}
			return args + `; import json, timm; c = timm.data.resolve_data_config(a, model=timm.create_model(a["model"])); ` +
				`json.dump(c, open("preprocess.json", "w"))`
		},
	},
	// The references of torchvision keep their arguments, and a moving average under model_ema. Those of classification normalise with the
	// mean and the standard deviation of ImageNet, and no argument changes this.
	{
		Name: "torchvision's references",
		Keys: []string{"model", "lr_scheduler", "args", "epoch"},
		Preprocess: func(v map[string]any) (words string, unsaid []string) {
			args, _ := v["args"].(map[string]any)
			resize, crop := numbersOf(args["val_resize_size"]), numbersOf(args["val_crop_size"])
			if len(resize) != 1 || len(crop) != 1 {
				return "", nil
			}
			words = fmt.Sprintf("mean=0.485,0.456,0.406 std=0.229,0.224,0.225 input-size=%v crop-mode=center resize-size=%v "+
				"interpolation=%v", crop[0], resize[0], args["interpolation"])
			if b := args["backend"]; b != nil && b != "PIL" && b != "pil" { // pictures are tensors when they are resized
				words += " tensor=true"
			}
			return words, nil
		},
	},
	// ultralytics saves whole modules. Late versions save one module, ema. Its classifier scales pixels to 0 … 1, resizes the
	// shorter edge, and crops the middle.
	{
		Name:     "ultralytics",
		Keys:     []string{"train_args", "ema"},
		Files:    []string{"args.yaml", "results.csv"},
		Author:   "Ultralytics",
		Settings: []string{"args.yaml"},
		Classes:  []string{"ema/names", "model/names"},
		Figures:  []Figures{{File: "results.csv", Of: []string{"metrics/*", "val/*"}}},
		Preprocess: func(v map[string]any) (words string, unsaid []string) {
			n := numbersOf(v["imgsz"]) // or height and width in the metadata of its graphs
			if v["task"] != "classify" || len(n) == 0 || len(n) > 2 {
				return "", nil
			}
			return fmt.Sprintf("input-size=%s crop-pct=1 interpolation=bilinear mean=0 std=1", joined(n, "x")), nil
		},
	},
}

// ofCatalyst are the tables of both versions.
var ofCatalyst = []Figures{
	{File: "valid.csv", Of: []string{"loss", "accuracy*"}},
	{File: "logs/valid.csv", Of: []string{"loss", "accuracy*"}},
}

func joined(numbers []float64, by string) string {
	var words []string
	for _, n := range numbers {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, by)
}
