//go:build unix

package local

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	adminRole       = "postgres"
	initialDatabase = "postgres"
	appRole         = "waybill"
	appDatabase     = "waybill"
)

// credentials are the generated passwords, kept in a file for our eyes only.
type credentials struct {
	Admin       string `json:"admin"`
	Application string `json:"application"`
}

func loadCredentials(dir string, fresh bool) (credentials, error) {
	path := filepath.Join(dir, "credentials.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if !fresh {
			return credentials{}, fmt.Errorf("%s is gone, and with it the passwords of the data beside it", path)
		}
		return newCredentials(path)
	}
	if err != nil {
		return credentials{}, fmt.Errorf("read passwords: %w", err)
	}
	var c credentials
	if err := json.Unmarshal(raw, &c); err != nil || c.Admin == "" || c.Application == "" {
		return credentials{}, fmt.Errorf("read passwords: %s is damaged", path)
	}
	return c, nil
}

// newCredentials are on disk before any server knows them.
func newCredentials(path string) (credentials, error) {
	c := credentials{Admin: rand.Text(), Application: rand.Text()}
	raw, err := json.Marshal(c)
	if err != nil {
		return c, fmt.Errorf("write passwords: %w", err)
	}
	if err := writeDurably(path, raw, nil); err != nil {
		return c, fmt.Errorf("write passwords: %w", err)
	}
	return c, nil
}

// writeDurably replaces a file so that a crash leaves the old or the new one,
// for the eyes of own alone.
//
// The folder may be the server's user's while we are root: what lies there under
// our name, perhaps a link to a file that only root may touch, is removed and
// never written through, and the file is given away by its handle.
func writeDurably(path string, content []byte, own *owner) error {
	tmp := path + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, werr := f.Write(content)
	if err := errors.Join(werr, own.giveOpen(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
