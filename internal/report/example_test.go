package report_test

import (
	"log"
	"os"

	"github.com/swagwrap/swagwrap/internal/report"
)

func Example() {
	t := report.NewTable(
		report.Column{Header: "method"},
		report.Column{Header: "accuracy", Align: report.Decimal},
		report.Column{Header: "NLL", Align: report.Decimal},
		report.Column{Header: "difference", Align: report.Decimal},
	)
	t.Row("SWA, stale BN", report.Percent(0.162, 1), report.Fixed(15.637, 3), report.Signed(15.49, 2))
	t.Row("SWA-Temp", report.Percent(0.951, 1), report.Fixed(0.1436, 4)) // the reference
	t.Row("SWAG", report.Percent(0.952, 1), report.Fixed(0.1438, 4), report.Signed(0.0002, 4))
	t.Note(report.Thousands(5000) + " test images")
	if err := t.WriteText(os.Stdout, report.Screen{Verbose: true}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// method         accuracy      NLL  difference
	// SWA, stale BN    16.2 %  15.637     +15.49
	// SWA-Temp         95.1 %   0.1436      —
	// SWAG             95.2 %   0.1438     +0.0002
	// 5,000 test images
}
