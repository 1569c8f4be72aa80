//go:build unix

package local

// Elsewhere changes where data goes that the server's user cannot reach.
func (c Config) Elsewhere(dir string) Config { c.refuge = dir; return c }

// Folders changes where programs are looked for.
func (c Config) Folders(dirs ...string) Config { c.folders = append([]string{}, dirs...); return c }
