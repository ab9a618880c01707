package heldout

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// Prefix begins the names of checks in the configurations of loops.
const Prefix = "held-out:"

const (
	checkName  = "check.json"
	resultName = "iteration-%06d.json"
	resultGlob = "iteration-*.json"
)

// Book is the folder of a check with its results.
type Book struct {
	dir string
	// Name is its name in the configuration of the loop.
	Name  string
	Check Check
}

// Keep stores a check in a new folder below root, for its owner only.
func Keep(root string, check *Check) (*Book, error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	digits := hex.EncodeToString(random[:])
	b := &Book{dir: filepath.Join(root, digits), Name: Prefix + digits, Check: *check}
	if err := atomicfile.MkdirAll(b.dir, 0o700); err != nil {
		return nil, err
	}
	return b, b.write(checkName, check)
}

// Open reads a check by its name. The error is [fs.ErrNotExist] if its folder is missing, as it is for
// an agent from which it is hidden.
func Open(root, name string) (*Book, error) {
	digits, ok := strings.CutPrefix(name, Prefix)
	if raw, err := hex.DecodeString(digits); !ok || err != nil || len(raw) == 0 || root == "" {
		return nil, fmt.Errorf("%.40q is not the name of a held-out check: %w", name, fs.ErrNotExist)
	}
	b := &Book{dir: filepath.Join(root, digits), Name: name}
	return b, b.read(checkName, &b.Check)
}

// Remove removes a check with its results.
func (b *Book) Remove() error { return os.RemoveAll(b.dir) }

// Write stores a result.
func (b *Book) Write(r *Result) error { return b.write(fmt.Sprintf(resultName, r.Iteration), r) }

// Result returns the result of an iteration; nil if there is none.
func (b *Book) Result(iteration int) (*Result, error) {
	var r Result
	err := b.read(fmt.Sprintf(resultName, iteration), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &r, err
}

// Results returns all results by iteration. Those that cannot be read are left out.
func (b *Book) Results() map[int]*Result {
	all := make(map[int]*Result)
	names, _ := filepath.Glob(filepath.Join(b.dir, resultGlob)) // the pattern is valid
	slices.Sort(names)
	for _, name := range names {
		var r Result
		if b.read(filepath.Base(name), &r) == nil {
			all[r.Iteration] = &r
		}
	}
	return all
}

func (b *Book) write(name string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(b.dir, name), append(raw, '\n'), 0o600)
}

func (b *Book) read(name string, value any) error {
	raw, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		return err
	}
	return json.NewDecoder(bytes.NewReader(raw)).Decode(value)
}
