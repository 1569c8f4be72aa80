package embedded

import "syscall"

func freeSpace(dir string) func() (int64, error) {
	return func() (int64, error) {
		var s syscall.Statfs_t
		if err := syscall.Statfs(dir, &s); err != nil {
			return 0, err
		}
		return int64(s.Bavail) * s.Bsize, nil // #nosec G115 -- no disk is that large
	}
}
