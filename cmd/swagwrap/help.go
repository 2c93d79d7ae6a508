package main

import (
	"context"
	"io"
	"strings"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
)

// topics are help pages of things that are no commands.
var topics = map[string]string{"parity": parityPage}

// topicCommand is what help TOPIC runs: see [flags.Anywhere].
func topicCommand(a *app) *command {
	return &command{
		name:  "topic",
		usage: "show a page about parity",
		args:  "TOPIC",
		run: func(_ context.Context, args []string) error {
			topic := strings.Join(args, " ")
			page, ok := topics[topic]
			if !ok {
				return console.Usagef("swagwrap help parity", "help %s: there is no command or topic of this name", topic)
			}
			_, err := io.WriteString(a.Stdout, page)
			return err
		},
	}
}

const parityPage = `Parity: the numbers of the training framework prove the whole chain

Between training and the first row of a result lie an exporter, a file of weights, names and orders. Each can be wrong in
silence. A few outputs that the training framework itself computed prove them all.

1. Write them once, where the network was trained. swagwrap.export and swagwrap.callback of the Python package do it without
   being asked. For a network that is trained already:

      swagwrap.reference(model, dataset, n=16, weights="checkpoints/epoch-19.pt", path="checkpoints/swagwrap-reference.npz")

   Any other framework needs three lines of NumPy:

      x = np.stack([dataset[i][0] for i in range(16)])
      y = network(x)                                      # in evaluation mode
      np.savez("checkpoints/swagwrap-reference.npz", inputs=x, outputs=y, weights="epoch-19.pt")

2. swagwrap fit finds swagwrap-reference.npz beside the graph or the checkpoints. It also finds test_data_set_0 of the ONNX
   Model Zoo. --reference FILE names another file. fit runs the graph with the weights of each checkpoint, and says:

      parity: 20 of 20 checkpoints, largest difference 3e-06: 16 examples of swagwrap-reference.npz

3. If the numbers differ, fit ends with exit code 65, and looks for the cause: weights of another file or key, a weight that is a
   constant in the graph, training mode, another order of inputs or channels, normalisation, softmax.
   --parity off goes on without the comparison, and the model card says so.

4. Raw examples in the file prove what the training program does to pictures. fit takes size, crop, interpolation, channels,
   orientation, mean and standard deviation from them, and names of classes and columns. What --preprocess says must agree:

      preprocessing: as given, it makes the tensors of 16 examples in swagwrap-reference.npz from its pictures

   If two settings give the same tensors, fit says so, and takes what they have in common.

5. Give the numbers that your own evaluation printed. The last checkpoint runs first, and must give them:

      swagwrap compare --expect "accuracy=0.953 loss=0.2011 n=5000" --bn-data train.npz posterior.safetensors test.npz

   If they differ, compare ends with exit code 65, and looks for the cause: other examples, another order of classes, means over
   batches, an average, another checkpoint, label smoothing, training mode, half precision. --expect-only warn goes on.

6. An exported model has its outputs for four made-up examples inside. "swagwrap doctor MODEL" compares them where it runs.

The file holds private data: examples, and with raw examples also pictures and rows. docs/formats.md describes it.
`
