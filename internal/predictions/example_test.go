package predictions_test

import (
	"log"
	"os"

	"github.com/swagwrap/swagwrap/internal/predictions"
	"github.com/swagwrap/swagwrap/internal/task"
)

// Rows say what their columns are, and are written in any format.
func Example() {
	schema := &predictions.Schema{
		Columns:    []task.Column{{Name: "prediction", Kind: task.Class}, {Name: "confidence"}},
		ClassNames: []string{"cat", "dog"}, Errors: true,
	}
	each := func(write func(*predictions.Row) error) error {
		if err := write(&predictions.Row{Path: "a.jpg", Label: 1, Values: []float64{1, 0.75}}); err != nil {
			return err
		}
		return write(&predictions.Row{Path: "b.jpg", Label: -1, Error: "not an image"})
	}
	if err := predictions.Write(os.Stdout, ".csv", schema, os.TempDir(), each); err != nil {
		log.Fatal(err)
	}
	// Output:
	// path,label,prediction,name,confidence,error
	// a.jpg,1,1,dog,0.75,
	// b.jpg,,,,,not an image
}
