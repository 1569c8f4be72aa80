package cli

import "github.com/spf13/cobra"

// notZero refuses a flag that was given as 0 where that means the same as
// leaving it out: whoever writes 0 means none.
func notZero(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		f := cmd.Flags().Lookup(name)
		switch v := f.Value.String(); {
		case !f.Changed || v != "0" && v != "0s":
		case f.DefValue == v:
			return usagef("--%s %s: want more than that, or leave it out", name, v)
		default:
			return usagef("--%s %s: want more than that, or leave it out for %s", name, v, f.DefValue)
		}
	}
	return nil
}
