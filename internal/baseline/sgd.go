package baseline

// sgd is the last checkpoint.
var sgd = &Method{
	Key: SGD, From: fromLast, Name: lastName, Needs: needsLast, Stored: always,
	Cost: oneNetwork, Deploy: lastCheckpoint,
	Run: func(w *work) error { return w.scaled(w.lastIterate, "") },
}
