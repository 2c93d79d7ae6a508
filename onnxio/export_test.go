package onnxio

import "github.com/swagwrap/swagwrap/weights"

// NewLayout is that of package checkpoints, which cannot be imported here.
var NewLayout func(models []*Model) (*weights.Layout, error)
