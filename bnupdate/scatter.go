package bnupdate

// scatter measures how much batches differ, which shows how far their statistics are from those of endless data. Let
// the batches be random draws of b_k among N images. Then the variance of their statistics x_k goes as 1/b_k, and the
// weighted mean Σ (b_k/N)·x_k has the squared standard error
//
//	SE² = Σ_k (b_k/N)·(x_k − x̄)² / (K − 1)
//
// Its expectation is exact for any sizes of the K batches.
func scatter(batches []Batch, value func(Batch) float64) (mean, squaredError float64) {
	var images, squares float64
	for _, b := range batches { // West 1979, "Updating mean and variance estimates"
		w, x := float64(b.Images), value(b)
		images += w
		d := x - mean
		mean += d * w / images
		squares += w * d * (x - mean)
	}
	return mean, squares / images / float64(len(batches)-1)
}
