package cli

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/internal/config"
)

// measurement is what `waybill bench` has of one with a result R.
type measurement[R any] struct {
	run   func(cmd *cobra.Command, engines engine.Config, say func(step string)) (R, error)
	print func(out io.Writer, r R) error
	sound func(r R) error // of a result that is shown, and is of something broken
}

// do measures on the engines that are named, tells how far it is, and shows the
// result.
func (m measurement[R]) do(cmd *cobra.Command, asJSON bool) error {
	engines, err := benchEngines()
	if err != nil {
		return err
	}
	say, done := progress(cmd.ErrOrStderr())
	res, err := m.run(cmd, engines, say)
	done()
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(cmd.OutOrStdout(), res)
	} else {
		err = m.print(cmd.OutOrStdout(), res)
	}
	return errors.Join(err, m.sound(res))
}

// benchEngines are those that environment and file name; a measurement starts
// the others itself. What a folder's running waybill wrote down is no setting:
// nobody asked to measure on it.
func benchEngines() (engine.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return engine.Config{}, err
	}
	var cfg config.Config
	if err := cfg.FromEnvironment(); err != nil {
		return engine.Config{}, usageError{err}
	}
	return engine.Config{
		Program: self, DatabaseURL: cfg.DatabaseURL, RegistryURL: cfg.RegistryURL,
		Broker: broker.Config{Brokers: cfg.Brokers, TLS: cfg.KafkaTLS, SASL: cfg.KafkaSASL, Logger: quiet()},
	}, nil
}
