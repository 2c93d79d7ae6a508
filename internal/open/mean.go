package open

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/swagwrap/swagwrap/internal/file"
	"github.com/swagwrap/swagwrap/internal/setting"
	"github.com/swagwrap/swagwrap/onnxio"
	"github.com/swagwrap/swagwrap/onnxio/checkpoints"
	"github.com/swagwrap/swagwrap/swag"
	"github.com/swagwrap/swagwrap/weights"
	"github.com/swagwrap/swagwrap/weights/statefile"
)

// openMean opens the given mean, FILE or KEY=FILE, and computes its SHA-256. The checkpoints must be open, because
// they prove which tensor is which.
func (s *FitInputs) openMean(ctx context.Context) (err error) {
	path := s.options.Mean
	if path == "" {
		return nil
	}
	exists := func(path string) bool { _, err := os.Stat(path); return err == nil }
	key := ""
	if k, file, ok := strings.Cut(path, "="); ok && !exists(path) && exists(file) {
		key, path = k, file
	}
	source := *s.source
	if source.Template != nil {
		if key == "" {
			keys, marked := stateDicts(path)
			key = averageKey(keys, marked, source.Template.StateDict)
		} else if key, err = networkUnder(path, key); err != nil {
			return err
		}
		source.Template = source.Template.Under(key)
	}
	models, err := source.Open([]string{path})
	if err != nil {
		return err
	}
	s.mean = models[0]
	sums, err := checkpoints.Sums(ctx, models, func(int) {})
	if err != nil {
		return err
	}
	s.Mean = &swag.Checkpoint{Path: file.RelativeTo(s.options.Output, path), Given: path, SHA256: sums[0], StateDict: source.key(s.mean)}
	for _, c := range s.Checkpoints {
		if c.SHA256 == s.Mean.SHA256 && c.StateDict == s.Mean.StateDict {
			return BadInput(fmt.Errorf("%s: is one of the checkpoints, %s, and no average of them", path, c),
				"leave it out of the checkpoints, or leave out "+setting.Mean.String())
		}
	}
	return nil
}

// networkUnder returns the key, or that of the average if there are several networks under it. It fails if a PyTorch file has nothing
// there.
func networkUnder(path, key string) (string, error) {
	f, err := statefile.Open(path)
	if err != nil {
		return key, nil // opening the mean reports the error
	}
	defer f.Close()
	sd, err := f.StateDict(key)
	if err != nil {
		return "", BadInput(err)
	}
	return averageKey(sd.NetworkKeys(), "", key), nil
}

// averageKeys matches the keys under which programs keep averages of weights.
var averageKeys = regexp.MustCompile(`(?i)ema|aver|avg|swa|shadow`)

// stateDicts returns the keys of the networks in a PyTorch file, and that of which the file itself says that it is an average, or "".
func stateDicts(path string) (keys []string, marked string) {
	f, err := statefile.Open(path)
	if err != nil {
		return nil, "" // opening the mean reports the error
	}
	defer f.Close()
	for _, sd := range f.StateDicts() {
		if sd.Average().Mark != "" && len(f.StateDicts()) > 1 {
			marked = sd.Key
		}
		parts := sd.NetworkKeys()
		if mean := sd.MeanKey(); mean != "" {
			parts = []string{mean}
		} else if len(parts) == 0 {
			parts = []string{sd.Key}
		}
		keys = append(keys, parts...)
	}
	return keys, marked
}

// averageKey returns the key of the average among the keys of a file, or that of the checkpoints if none is found. marked is the key
// of which the file itself says so: Lightning's WeightAveraging and the EMAHook of MMEngine keep the average under state_dict.
func averageKey(keys []string, marked, ofCheckpoints string) string {
	matching := func(part func(key string) string) (found []string) {
		for _, key := range keys {
			if averageKeys.MatchString(part(key)) {
				found = append(found, key)
			}
		}
		return found
	}
	found := matching(func(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }) // ema/online_model is no average
	if len(found) == 0 {
		found = matching(func(key string) string { return key })
	}
	switch {
	case len(keys) == 1:
		return keys[0]
	case marked != "":
		return marked
	case len(found) == 1:
		return found[0]
	}
	return ofCheckpoints
}

// meanVector sets the weights of the mean. Its batch-norm statistics are not used.
func (s *FitInputs) meanVector(set *checkpoints.Set) error {
	if s.mean == nil {
		return nil
	}
	reference := set.Models[set.Reference]
	same, err := checkpoints.Match(s.mean, reference)
	if err != nil {
		return err
	}
	if s.Mean.Theta, err = same.Vector(s.Layout, weights.Parameter); err != nil {
		return err
	}
	for _, t := range s.Layout.Role(weights.Constant) {
		if same.Tensor(t.Name) == nil {
			continue // no part of a simplified model, which export writes
		}
		if err := unchanged(t, same, reference); err != nil {
			return err
		}
	}
	return nil
}

// unchanged fails if a constant of the checkpoints is another one in the mean. An average of equal numbers may differ
// from them by rounding.
func unchanged(t weights.Tensor, mean, checkpoint *onnxio.Model) error {
	const tolerance = 1e-3 // relative to the tensor's Euclidean length
	a, err := values(mean, t)
	if err != nil {
		return err
	}
	b, err := values(checkpoint, t)
	if err != nil {
		return err
	}
	var distance, size float64
	for i, v := range b {
		d := float64(a[i]) - float64(v)
		distance, size = distance+d*d, size+float64(v)*float64(v)
	}
	if distance > tolerance*tolerance*size {
		return &onnxio.Error{Path: mean.Path, Tensor: t.Name, What: "differs from that of the checkpoints, in which it never changes",
			Hint: setting.Mean.String() + " takes an average over the run of the checkpoints"}
	}
	return nil
}

func values(m *onnxio.Model, t weights.Tensor) ([]float32, error) {
	held, err := m.Lookup(t)
	if err != nil {
		return nil, err
	}
	out := make([]float32, held.Len())
	t.DType.Float32s(out, m.Stretch(held, 0, held.Len()))
	return out, nil
}
