package compare

import (
	"path/filepath"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/study"
	"github.com/swagwrap/swagwrap/internal/task"
)

// deploy gives the method's ensemble the number that was fitted for the method, if the data determine it. Two numbers, fitted
// on halves of the test data, do not fit into one ensemble, so calibrate has to fit another one.
func (m *Method) deploy(fitted *task.Fitted) {
	c := fitted.Single()
	if m.Deploy == nil || c == nil || c.Undetermined != "" {
		return
	}
	if c.NoiseStd != nil {
		m.Deploy.NoiseStd = c.NoiseStd
	} else if v, ok := c.Number(); ok {
		m.Deploy.Temperature = v
	}
}

// Next returns the steps that deploy the recommended method.
func (r *Result) Next() []study.Step {
	if len(r.Methods) < 2 && !r.Single() {
		return nil
	}
	if m := r.Verdict().Choice; m != nil {
		return r.StepsOf(m)
	}
	return nil
}

// The ensemble that is recommended, and the same before calibrate.
const deployed, uncalibrated = "ensemble.safetensors", "uncalibrated.safetensors"

// StepsOf returns the steps that make the ensemble of a method and export it. Its scores are those of the comparison. It
// returns none if no ensemble is equivalent to the method.
func (r *Result) StepsOf(m *Method) []study.Step {
	if m.Deploy == nil || m.StaleBN || !m.Sound() {
		return nil
	}
	calibrates := m.Scaling != nil && m.Deploy.Temperature == 0
	again := calibrates || m.Noise != nil && m.Noise.CrossFitted()
	made := study.Sample{Output: r.at(deployed), Members: *m.Deploy}
	if again {
		made.Output = r.at(r.Between, uncalibrated)
	}
	if calibrates {
		made.Members.Threshold = 0 // the threshold applies to calibrated probabilities
	}
	if m.Key == baseline.SWAGTuned && m.Deploy.Temperature != 0 {
		made.Settings = r.Settings // with the batch-norm images that all methods use
	}
	if to := r.Inputs.Adapt; to != nil && to.Target != nil {
		made.Target, made.Weight = study.Training(to.Target), to.Weight
	}
	recomputes := false
	var networks []*infer.Network
	for _, run := range m.Posteriors {
		recomputes = recomputes || run.Network.Recomputes()
		made.Posteriors, networks = append(made.Posteriors, run.Network.Posterior.Path), append(networks, run.Network)
	}
	switch {
	case m.Deploy.Checkpoints():
		made.Folders = baseline.MovedCheckpoints(m.Posteriors)
	case recomputes:
		made.Training = study.Training(r.Inputs.BatchNorm.Data)
	}
	steps, last := []study.Step{made}, made.Output
	if again {
		score, fit := r.fitAgain(m)
		score.Plain = made.Target != "" // the temperature belongs to the statistics of training
		steps, last = append(steps, score, fit), fit.Output
	}
	return append(steps, study.ExportOf(r.at("ensemble.onnx"), last, m.Members, networks...)...)
}

// fitAgain returns the steps that fit again what was fitted on halves of the test data, and what sample cannot be told. Without
// a method, calibrate fits what the first calibrator of the task fits.
func (r *Result) fitAgain(m *Method) (study.Score, study.Calibrate) {
	score := study.Score{
		Output:       r.at(r.Between, "val-predictions.npz"),
		Ensemble:     r.at(r.Between, uncalibrated),
		KeepMembers:  m.Noise != nil,
		AsValidation: true,
	}
	if r.Validation != nil {
		score.Data = r.Validation.Sources()[0].Path
	}
	fit := study.Calibrate{
		Output:      r.at(deployed),
		Ensemble:    score.Ensemble,
		Predictions: score.Output,
		Threshold:   m.Threshold,
	}
	if m.Noise == nil && m.Scaling.By.Method != r.First().Method {
		fit.Method = string(m.Scaling.By.Method)
	}
	return score, fit
}

// at returns the path of a file that the commands write.
func (r *Result) at(names ...string) string {
	return filepath.Join(append([]string{r.Folder}, names...)...)
}
