package ensemble_test

import (
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
	"github.com/swagwrap/swagwrap/internal/infer"
	"github.com/swagwrap/swagwrap/internal/task"
)

func TestMain(m *testing.M) { infertest.Main(m) }

// engine is one of ordinary settings.
func engine(t *testing.T) *infer.Engine {
	t.Helper()
	return infertest.Engine(t)
}

// classes is the task of so many classes.
func classes(t testing.TB, count int) task.Task {
	t.Helper()
	classes, err := task.New("", task.OutputSpec{Output: "logits", Count: count})
	if err != nil {
		t.Fatal(err)
	}
	return classes
}
