// Package cli is the command line: one file per command. Commands parse, call
// the wiring room or a package, and print; they decide nothing else.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// Version is set when a release is built.
var Version = "dev"

// Main runs the program with args and returns its exit code.
func Main(args []string, out, errOut io.Writer) int {
	// The first signal asks for an orderly stop; a second one, after the
	// handler is gone, ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintln(errOut, "waybill:", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

// stopSignals ask for an orderly stop. A terminal that is closed does, too,
// unless nohup was asked to keep the program from hearing of it.
func stopSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// usageError is the caller's mistake rather than a failure: exit code 2.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "waybill",
		Short: "A message broker and event layer for services that keep their truth in Postgres",
		Long: `Waybill carries events from the transaction that tells them to everyone who
wants them: outbox, broker, schema registry, consumers and live push in one
program. "waybill up" starts all of it.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       Version,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q; see waybill --help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s; see %s --help", flagText(err), cmd.CommandPath())
	})
	root.AddCommand(newVersion())
	root.AddCommand(
		newUp(), newRun(), newBroker(), newPublish(), newSubscribe(), newTail(),
		newTopics(), newGroups(), newLag(), newScale(), newOutbox(), newCDC(), newDLQ(), newQueue(), newWebhook(), newSaga(), newSchema(), newIncidents(), newDoctor(), newTenant(), newCourier(), newFault(), newSim(), newBench(), newDemo(),
	)
	wrapArgs(root)
	return root
}

// wrapArgs makes a wrong number of arguments a usage error on every command.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			var usage usageError
			if err == nil || errors.As(err, &usage) {
				return err
			}
			if cmd.HasAvailableSubCommands() { // whose usage line names none of them
				return usagef("%w; see %s --help", err, cmd.CommandPath())
			}
			return usagef("%w; usage: %s", err, strings.TrimSpace(cmd.UseLine()))
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}
