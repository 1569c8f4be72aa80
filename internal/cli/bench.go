package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure on this machine",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchE2E(), newBenchRelay(), newBenchConsume(), newBenchAnalytics(), newBenchBuffer(), newBenchLoad(), newBenchQueue(), newBenchFair(), newBenchPush(), newBenchWebhook(), newBenchNoMarks(), newBenchPushServer())
	return cmd
}

// sound makes an error of what a measurement must not find.
func sound(lost, reordered int64) error {
	if lost == 0 && reordered == 0 {
		return nil
	}
	return fmt.Errorf("%d events were lost and %d out of order: the figures are of something broken", lost, reordered)
}

// progress tells on a terminal what is being done, in one line that the next
// step overwrites. Elsewhere it says nothing.
func progress(errOut io.Writer) (say func(step string), done func()) {
	f, ok := errOut.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func(string) {}, func() {}
	}
	say = func(step string) { _, _ = fmt.Fprint(errOut, "\r\x1b[K"+step+"…") }
	return say, func() { _, _ = fmt.Fprint(errOut, "\r\x1b[K") }
}
