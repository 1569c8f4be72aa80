package cli

import (
	"flag"
	"os"
	"testing"
)

// Tests that run in parallel wait more than they work: there may be more of
// them than cores, unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("3"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
