package infer_test

import (
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/infertest"
)

func TestMain(m *testing.M) { infertest.Main(m) }
