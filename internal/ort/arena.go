package ort

import binding "github.com/yalue/onnxruntime_go"

// shareMemory gives all sessions one pool of memory for what their runs compute,
// which keeps its size from run to run. ONNX Runtime's default is a pool for
// each session: four of a ResNet-18 that two threads ran with batches of 16 took
// 885 MB, and with one pool 410. Without any pool, the system's clearing of
// fresh pages costs some per cent of the time.
func shareMemory() error {
	info, err := binding.GetMemoryInfo()
	if err != nil {
		return err
	}
	const sameAsRequested = 1 // the default strategy doubles the pool each time
	pool, err := binding.NewArenaCfg(0, sameAsRequested, -1, -1)
	if err != nil {
		return err
	}
	defer pool.Destroy()
	return binding.CreateAndRegisterAllocator(info, pool)
}
