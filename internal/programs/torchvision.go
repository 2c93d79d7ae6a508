package programs

import "fmt"

// The references of torchvision keep their arguments, and a moving average under model_ema. Those of classification normalise with the
// mean and the standard deviation of ImageNet, and no argument changes this.
var _ = register(Program{
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
})
