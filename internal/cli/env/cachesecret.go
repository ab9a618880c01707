package env

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/userdir"
)

const (
	secretName  = "cache-secret"
	secretBytes = 32
)

// CacheSecret returns the user's secret for cached answers: a file in the user's state folder,
// which is created if it is missing. So answers count only if this user cached them, and not if
// they came with a folder. Without a state folder the secret is new each time.
func (e *Env) CacheSecret() ([]byte, error) {
	dir := userdir.State(e.Getenv)
	if dir == "" {
		return newSecret(), nil
	}
	name := filepath.Join(dir, secretName)
	secret, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createSecret(dir, name); err != nil {
			return nil, fmt.Errorf("create secret of the cache: %w", err)
		}
		secret, err = os.ReadFile(name)
	}
	if err == nil && len(secret) != secretBytes {
		err = fmt.Errorf("%s has %d bytes, not %d; remove it to get a new one", name, len(secret), secretBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("read secret of the cache: %w", err)
	}
	return secret, nil
}

func newSecret() []byte {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	return secret
}

// createSecret creates the file as a whole, unless another process does at the same time.
func createSecret(dir, name string) error {
	if err := atomicfile.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+secretName+"-*") // has mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(newSecret())
	if err = errors.Join(err, f.Close()); err == nil {
		if err = os.Link(f.Name(), name); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(f.Name()))
}
