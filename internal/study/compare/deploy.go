package compare

import (
	"path/filepath"
	"strconv"

	"github.com/swagwrap/swagwrap/internal/baseline"
	"github.com/swagwrap/swagwrap/internal/ensemble"
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
	if c.Method == task.ByNoise {
		m.Deploy.NoiseStd = c.NoiseStd
	} else if v, ok := c.Number(); ok {
		m.Deploy.Temperature = v
	}
}

// choice returns the method to deploy: the baseline, or the one with the lowest first loss of those that are
// significantly better. It returns nil if no method can be an ensemble, or if nothing is known about any: see
// [Result.unjudged].
func (r *Result) choice() *Method {
	base := r.base()
	if r.unjudged() != "" {
		return nil
	}
	if m := r.betterPlain(base); m != nil && m.Deploy != nil {
		return m // all that is fitted on such validation data is wrong
	}
	var best *Method
	for _, m := range r.Methods {
		if m.Deploy == nil || m.StaleBN || !m.Sound() {
			continue
		}
		sign, _ := r.Told(m, r.Loss().Key)
		if (m == base || sign < 0 || base.Deploy == nil) && (best == nil || r.Value(m) < r.Value(best)) {
			best = m
		}
	}
	return best
}

// Next returns the commands that deploy the recommended method.
func (r *Result) Next() []string {
	if len(r.Methods) < 2 && !r.Single() {
		return nil
	}
	if m := r.choice(); m != nil {
		return r.Commands(m)
	}
	return nil
}

// Commands returns the commands that make the ensemble of a method and export it. Its scores are those of the comparison. It
// returns none if no ensemble is equivalent to the method.
func (r *Result) Commands(m *Method) []string {
	out := []string{}
	if m.Deploy == nil || m.StaleBN || !m.Sound() {
		return out
	}
	settings, calibrates := *m.Deploy, m.Scaling != nil && m.Deploy.Temperature == 0
	if calibrates {
		settings.Threshold = 0 // the threshold applies to calibrated probabilities
	}
	how := settings.Flags()
	if m.Key == baseline.SWAGTuned && m.Deploy.Temperature != 0 {
		how = []string{"--settings", r.Settings} // with the batch-norm images that all methods use
	}
	args := append([]string{"swagwrap", "sample", "-o", r.at("ensemble.safetensors")}, how...)
	recomputes := false
	for _, run := range m.Posteriors {
		recomputes = recomputes || run.Network.Recomputes()
	}
	switch {
	case m.Deploy.Method == ensemble.Iterates:
		args = append(args, moved(m.Posteriors)...)
	case recomputes:
		args = append(args, study.StatisticsFlags(r.Inputs.BatchNorm.Data, r.Recomputing)...)
	default:
		args = append(args, study.StatisticsFlags(nil, r.Recomputing)...)
	}
	for _, run := range m.Posteriors {
		args = append(args, run.Network.Posterior.Path)
	}
	out, ensemble := append(out, study.Shell(args...)), r.at("ensemble.safetensors")
	if calibrates || m.Noise != nil && m.Noise.CrossFitted() {
		out, ensemble = append(out, r.fitCommands(m)...), r.at("calibrated.safetensors")
	}
	var networks []*infer.Network
	for _, run := range m.Posteriors {
		networks = append(networks, run.Network)
	}
	return append(out, study.ExportCommand(r.at("ensemble.onnx"), ensemble, m.Members, networks...)...)
}

// fitCommands returns the commands that fit again what was fitted on halves of the test data, and what sample has no
// flag for. Without --method, calibrate fits what the first calibrator of the task fits.
func (r *Result) fitCommands(m *Method) []string {
	val := study.Labelled
	if r.Validation != nil {
		val = r.Validation.Sources()[0].Path
	}
	score, fit := []string{"swagwrap", "score"}, []string{"swagwrap", "calibrate", "-o", r.at("calibrated.safetensors")}
	switch {
	case m.Noise != nil:
		score = append(score, "--keep-members")
	case m.Scaling.By.Method == r.First().Method: // what calibrate does by default
	default:
		fit = append(fit, "--method", string(m.Scaling.By.Method))
	}
	if m.Threshold > 0 {
		fit = append(fit, "--threshold", strconv.FormatFloat(m.Threshold, 'g', -1, 64))
	}
	score = append(score, r.Reading...)
	ensemble, scored := r.at("ensemble.safetensors"), r.at("val-predictions.npz")
	return []string{study.Shell(append(score, "-o", scored, ensemble, val)...), study.Shell(append(fit, "--ensemble", ensemble, scored)...)}
}

// at returns the path of a file that the commands write.
func (r *Result) at(name string) string { return filepath.Join(r.Folder, name) }

// moved returns the folders of checkpoints that are not at the paths in their posteriors.
func moved(runs []baseline.Run) []string {
	var out []string
	elsewhere := false
	for _, run := range runs {
		if len(run.Checkpoints) == 0 {
			return nil
		}
		p := run.Network.Posterior
		elsewhere = elsewhere || run.Checkpoints[0].Path != infer.CheckpointPath(p, p.Checkpoints[0], "")
		out = append(out, "--checkpoints", filepath.Dir(run.Checkpoints[0].Path))
	}
	if !elsewhere {
		return nil
	}
	return out
}
