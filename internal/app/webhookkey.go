package app

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/waybillhq/waybill/webhook/seal"
)

// webhookKeyFile is the key in the data folder that webhooks' secrets are sealed
// with where none is configured.
const webhookKeyFile = "webhook.key"

// webhookKeys are the configured keys and behind them that of the data folder,
// which opens what was sealed before any was configured. Only what runs
// everything in one folder makes one.
func (a *App) webhookKeys() ([][]byte, error) {
	keys, err := a.cfg.Webhooks.SealKeys()
	if err != nil || a.lock == nil {
		return keys, err
	}
	path := filepath.Join(a.cfg.Dir, webhookKeyFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && len(keys) == 0 {
		fresh := make([]byte, seal.KeySize)
		_, _ = rand.Read(fresh) // never fails: the program ends when there is no randomness
		if err := writePrivate(path, []byte(base64.StdEncoding.EncodeToString(fresh)+"\n")); err != nil {
			return nil, fmt.Errorf("keep the key of webhooks: %w", err)
		}
	}
	own, err := WebhookKey(a.cfg.Dir)
	if own != nil {
		keys = append(keys, own)
	}
	return keys, err
}

// WebhookKey is the key that `waybill up` keeps in dir, nil if there is none. A
// file that others may read, or that is another's, is refused.
func WebhookKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, webhookKeyFile)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if !ours(path) {
		return nil, fmt.Errorf("%s is not its owner's alone: chmod 600 it, or move it away if it is not yours", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("key of webhooks: %w", err)
	}
	key, err := seal.ParseKey(strings.TrimSpace(string(b)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return key, nil
}
