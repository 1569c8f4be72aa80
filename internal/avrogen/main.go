// Command avrogen writes the Go types of a folder of Avro contracts. A line
//
//	//go:generate go run github.com/waybillhq/waybill/internal/avrogen
//
// in the folder's package keeps them up to date; package gen says what it
// understands.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/waybillhq/waybill/internal/avrogen/gen"
)

func main() {
	dir := flag.String("dir", ".", "folder of the *.avsc files, and of the Go files written")
	flag.Parse()
	if _, err := gen.Write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "avrogen:", err)
		os.Exit(1)
	}
}
