//go:build !unix

package embedded

import "errors"

func limitFiles(bytes string) error {
	if bytes == "" {
		return nil
	}
	return errors.New("no such limit on this system")
}
