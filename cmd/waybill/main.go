// Command waybill is the message broker and event layer in one program.
package main

import (
	"os"

	"github.com/waybillhq/waybill/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }
