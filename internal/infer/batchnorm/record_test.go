package batchnorm_test

import (
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/bnupdate"
	"github.com/swagwrap/swagwrap/internal/infer/batchnorm"
)

// What is off is reported with its likely causes, those first that the numbers point to.
func TestMismatch(t *testing.T) {
	t.Parallel()
	right := bnupdate.LayerCheck{Layer: "right", Means: 0.02, Variances: 0.02, ExpectedMeans: 0.03, ExpectedVariances: 0.03}
	little := bnupdate.LayerCheck{Layer: "little", Means: 0.3, Variances: 0.4, ExpectedMeans: 0.03, ExpectedVariances: 0.05}
	much := bnupdate.LayerCheck{Layer: "much", Means: 1.2, Variances: 0.4, ExpectedMeans: 0.03, ExpectedVariances: 0.05}
	for _, tc := range []struct {
		layers        []bnupdate.LayerCheck
		of            batchnorm.Record
		found, causes string
	}{
		{layers: []bnupdate.LayerCheck{right}},
		{[]bnupdate.LayerCheck{little, right}, batchnorm.Record{}, "at the first layer (little) the checkpoints store means that are 0.3 standard deviations, and variances that are a factor of 1.5 from what this data gives; chance and training explain differences of 0.03 and a factor of 1.1", "Likely causes: training augmented its images and these are plain"},
		{[]bnupdate.LayerCheck{little}, batchnorm.Record{Augment: "none"}, "at the first layer", "Likely causes: training augmented its images and these are plain"},
		{[]bnupdate.LayerCheck{little}, batchnorm.Record{Augment: "RandomHorizontalFlip()"}, "at the first layer", "Likely causes: another augmentation than in training"},
		{[]bnupdate.LayerCheck{little}, batchnorm.Record{AsSeen: true}, "at the first layer", "Likely causes: these batches were saved with other transforms"},
		{[]bnupdate.LayerCheck{much}, batchnorm.Record{}, "at the first layer (much)", "Likely causes: another mean and standard deviation (the fit with Preprocess \"mean=M std=S\")"},
		{[]bnupdate.LayerCheck{right, little, much}, batchnorm.Record{}, "at 2 of 3 layers, though not at the first, most (much)", "Likely causes: other examples than in training, or not all of its classes"},
	} {
		b := tc.of
		b.Check = &bnupdate.Check{Examples: 100, Layers: tc.layers}
		found, causes := "", ""
		if f := b.Mismatch(); f != nil {
			found, causes = f.Cause, f.Hint
		}
		if !strings.Contains(found, tc.found) || !strings.HasPrefix(causes, tc.causes) || (found == "") != (tc.found == "") {
			t.Errorf("%+v: %q, %q", tc, found, causes)
		}
		if warnings := b.AllWarnings(); len(warnings) != min(1, len(found)) {
			t.Errorf("%+v: warnings %q", tc, warnings)
		}
	}
	if f := (*batchnorm.Record)(nil).Mismatch(); f != nil {
		t.Errorf("without a record: %v", f)
	}
	if w := (&batchnorm.Record{Examples: 40, MoreExamples: 24}).AllWarnings(); len(w) != 1 || !strings.Contains(w[0], "40 examples are too few. Give at least 24 more") {
		t.Errorf("too few examples: %q", w)
	}
	if w := (&batchnorm.Record{Stale: true, Warnings: []string{"first"}}).AllWarnings(); len(w) != 2 || w[0] != "first" || !strings.Contains(w[1], "do not belong to averaged or sampled weights") {
		t.Errorf("stale: %q", w)
	}
}

// Sorted images are told of, by the variance between batches.
func TestBatchNormWarnings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		r    bnupdate.Result
		want []string
	}{
		{bnupdate.Result{BatchSize: 32, BetweenShare: []float64{0.01, 0.2}}, nil},
		{bnupdate.Result{BatchSize: 128, BetweenShare: []float64{0.01, 0.06}}, nil},
		{bnupdate.Result{BatchSize: 128, BetweenShare: []float64{0.01, 0.07}}, []string{"7 % of a batch-norm layer's variance lies between batches"}},
		{bnupdate.Result{BatchSize: 8, BetweenShare: []float64{0.5, 0.3}}, []string{"50 % of a batch-norm layer's variance lies between batches"}},
	} {
		var b batchnorm.Record
		b.Warn(tc.r)
		if len(b.Warnings) != len(tc.want) || len(tc.want) > 0 && !strings.Contains(b.Warnings[0], tc.want[0]) {
			t.Errorf("%+v: %q", tc.r, b.Warnings)
		}
	}
}
