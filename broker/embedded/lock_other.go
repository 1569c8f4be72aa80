//go:build !unix

package embedded

import (
	"os"
	"path/filepath"
)

// lockDir only marks the directory: keeping a second broker out is left to
// the listener's port here.
func lockDir(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "waybill.lock"), os.O_CREATE|os.O_RDWR, 0o600)
}
