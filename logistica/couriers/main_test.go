package couriers_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// The property takes some hundred statements for each check: fewer of them,
// unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("20"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
