package baseline

// swa is the mean of the weights.
var swa = &Method{
	Key: SWA, From: fromSWA, Name: called("SWA"), Needs: needsSpread, Cost: oneNetwork, Deploy: averaged,
	Run: func(w *work) error { return w.scaled(w.swaOf, "") },
}
