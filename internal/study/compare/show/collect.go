package show

import "github.com/swagwrap/swagwrap/internal/setting"

// collected says what more checkpoints gave networks whose learning rate had fallen to zero. The figures are means over
// three seeds, from the tables "MNIST, 1,000 images" and "MNIST, 250 images" of docs/results.md and
// fixtures/results/README.md: the NLL of the row "SGD, falling rate", and of SWA.
const collected = "One checkpoint gives no SWA and no SWAG. On MNIST with 1,000 images, 20 more epochs at a constant learning rate and " +
	"SWA " +
	"took the NLL from 0.2397 to 0.2096, without temperatures. With 250 images it went from 0.7129 to 0.5913."

// code returns the lines of Python that collect more checkpoints, if there is only one.
func (r words) code() []string {
	if !r.Single() {
		return nil
	}
	fit := []string{setting.Template.With("model.onnx")}
	if name := r.Runs[0].Network.Posterior.Card.Task; name != "" {
		fit = append(fit, setting.Task.With(name))
	}
	fit = append(fit, setting.Output.With("posterior.safetensors"), "checkpoints")
	return []string{
		"# 20 more epochs at a constant learning rate, without a scheduler (swagwrap.callback does the same)",
		`os.makedirs("checkpoints", exist_ok=True)`,
		"for group in optimizer.param_groups:",
		`    group["lr"] = 0.01  # a tenth to a half of the first rate of training`,
		"for epoch in range(20):",
		"    train_one_epoch(model, optimizer, train_loader)",
		`    torch.save(model.state_dict(), f"checkpoints/epoch-{epoch:02d}.pt")`,
		`torch.onnx.export(model.eval(), (x,), "model.onnx", dynamo=True, optimize=False,  # x is a batch of inputs`,
		`                  dynamic_shapes=({0: torch.export.Dim("batch")},))`,
		"# then: " + setting.Line(setting.Fit.With(fit...)),
	}
}
