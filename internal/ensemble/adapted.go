package ensemble

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/swagwrap/swagwrap/internal/dataset"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
	"github.com/swagwrap/swagwrap/internal/infer/probe"
	"github.com/swagwrap/swagwrap/weights"
)

// Adapted says to which data, which need no labels, the batch-norm statistics of a component were adapted.
type Adapted struct {
	Data     string           `json:"data"` // a name for messages
	Sources  []dataset.Source `json:"sources"`
	Weight   float64          `json:"weight"` // the share of the target
	Examples int              `json:"examples"`
	// Target is what a look at the data found, and Probe what the check of their inputs found. Scored data are compared with it.
	Target *batchnorm.Target `json:"target,omitempty"`
	Probe  *probe.Report     `json:"intake,omitempty"`
	// Warnings stay with the predictions.
	Warnings []string `json:"warnings,omitempty"`
}

// sourceSection returns the name of the section with the statistics of component i before they were adapted.
func sourceSection(i int) string { return fmt.Sprintf("source.%d", i) }

// Adapted reports whether the statistics were adapted.
func (e *Ensemble) Adapted() bool {
	for _, c := range e.Components {
		if c.Adapted != nil {
			return true
		}
	}
	return false
}

// GoBack takes the statistics from before they were adapted.
func (e *Ensemble) GoBack() {
	for i := range e.Components {
		if c := &e.Components[i]; c.Adapted != nil {
			c.Statistics, c.Source, c.Adapted = c.Source, nil, nil
		}
	}
}

// statisticsSum identifies the statistics in force.
func (e *Ensemble) statisticsSum() string {
	sum := sha256.New()
	for _, c := range e.Components {
		for _, s := range c.Statistics {
			b := make([]byte, 4*len(s))
			weights.F32.PutFloat32s(b, s)
			sum.Write(b)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
