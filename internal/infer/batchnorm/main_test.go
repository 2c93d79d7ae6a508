package batchnorm_test

import (
	"testing"

	"github.com/swagwrap/swagwrap/internal/infer/infertest"
)

func TestMain(m *testing.M) { infertest.Main(m) }
