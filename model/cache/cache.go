// Package cache answers requests that were answered before from files: the same
// model, endpoint and request give the same answer without a request being
// sent.
//
// An entry is one file with a checksum, named by the hash of all that determines
// the answer. A damaged entry, or one made with another secret, is a miss and is
// removed. Entries need not survive
// a power loss, so no call waits for the disk.
//
// Answers with a temperature above 0 are shared like all others; requests that
// are to get several answers set [model.Request.Sample].
package cache

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/model"
)

// formatVersion is the version of entries, a part of their keys.
const formatVersion = "perdure cache 1"

// maxEntryBytes bounds what is read of an entry: the largest answer, escaped.
const maxEntryBytes = 8 * model.DefaultMaxResponseBytes

// Config configures [New].
type Config struct {
	// Dir is the folder of the entries; it is made when there is something to
	// put in. Required.
	Dir string
	// Secret returns the secret of the checksums, at the first use of the cache.
	// Entries that were made with another secret, such as those that come with a
	// repository, are misses. After an error the cache answers and keeps nothing.
	// nil: no secret, so that all who can write the folder can plant answers.
	Secret func() ([]byte, error)
	// Logger: nil discards.
	Logger *slog.Logger
}

// maxWriting is how many answers are written in the background at once.
const maxWriting = 64

// Cache keeps answers in a folder. It is safe for concurrent use, by several
// processes too. Calls do not wait for an answer to be written; Close does.
type Cache struct {
	dir    string
	log    *slog.Logger
	secret func() ([]byte, error)

	mu      sync.Mutex // guards writing
	writing map[string]*body
	idle    *sync.Cond // nothing is being written
}

// New returns a cache over a folder that need not be there yet.
func New(cfg Config) (*Cache, error) {
	if cfg.Dir == "" {
		return nil, errors.New("open cache: Dir is missing")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Secret == nil {
		cfg.Secret = func() ([]byte, error) { return nil, nil }
	}
	c := &Cache{dir: cfg.Dir, log: cfg.Logger, secret: sync.OnceValues(cfg.Secret), writing: make(map[string]*body)}
	c.idle = sync.NewCond(&c.mu)
	return c, nil
}

// Close waits until all answers are written. The cache may be used further.
func (c *Cache) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.writing) > 0 {
		c.idle.Wait()
	}
}

// Attach returns m with the cache before it. name is what the configuration
// calls the model, endpoint its base URL, empty for the provider's own: both
// are part of an entry's key.
func (c *Cache) Attach(m model.Model, name, endpoint string) model.Model {
	return &cached{Model: m, cache: c, name: name, endpoint: endpoint}
}

// cached is a model with a cache before it.
type cached struct {
	model.Model
	cache          *Cache
	name, endpoint string
}

// Unwrap returns the model behind the cache.
func (m *cached) Unwrap() model.Model { return m.Model }

// Generate answers from the cache, else asks the model and keeps its answer. A
// cache that cannot be read or written is not a reason to fail.
func (m *cached) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if ctx.Err() != nil {
		return nil, model.Canceled(ctx)
	}
	key := keyOf(m.name, m.endpoint, req)
	if b := m.cache.get(key); b != nil {
		hit := model.SeparateThoughts(m.Model, b.hit(m.name))
		if model.OnlyThoughts(m.name, hit) == nil { // else one of a version that kept such replies
			if req.OnText != nil {
				req.OnText(hit.Text)
			}
			return hit, nil
		}
	}
	resp, err := m.Model.Generate(ctx, req)
	if err == nil && resp != nil && !resp.Cached {
		m.cache.put(key, m.name, resp)
	}
	return resp, err
}

func keyOf(name, endpoint string, req *model.Request) string {
	sum := sha256.Sum256([]byte(formatVersion + "\n" + endpoint + "\n" + model.Hash(name, req)))
	return hex.EncodeToString(sum[:])
}

// body is what an entry holds behind its checksum.
type body struct {
	Key        string    `json:"key"`
	Model      string    `json:"model"`
	CreatedAt  time.Time `json:"created_at"`
	CostMicros *int64    `json:"cost_micros,omitempty"`
	Response   response  `json:"response"`
}

// response is what of an answer is kept.
type response struct {
	Text       string           `json:"text"`
	Thoughts   string           `json:"thoughts,omitempty"`
	Separated  bool             `json:"separated,omitempty"` // not in entries from before there were thoughts
	Citations  []model.Citation `json:"citations,omitempty"`
	Usage      model.Usage      `json:"usage"`
	StopReason string           `json:"stop_reason,omitempty"`
	Model      string           `json:"model,omitempty"`
	Notes      []string         `json:"notes,omitempty"`
}

// hit is the response to a request that the entry answers: it takes no tokens
// and costs nothing.
func (b *body) hit(name string) *model.Response {
	r := &b.Response
	note := fmt.Sprintf("answered from the cache; this saved %d input and %d output tokens", r.Usage.InputTokens,
		r.Usage.OutputTokens)
	return &model.Response{
		Text: r.Text, Thoughts: r.Thoughts, Separated: r.Separated,
		Citations: r.Citations, StopReason: r.StopReason, Model: r.Model, Asked: name,
		CostMicros: new(int64), Cached: true,
		Notes: append(slices.Clone(r.Notes), note),
	}
}

// path returns the file of a key. All are in one folder: with many folders, creating
// a file takes several times as long on common file systems.
func (c *Cache) path(key string) string { return filepath.Join(c.dir, key+suffix) }

const suffix = ".json"

// get returns the entry of a key, nil when there is none.
func (c *Cache) get(key string) *body {
	c.mu.Lock()
	b := c.writing[key]
	c.mu.Unlock()
	if b != nil {
		return b
	}
	path := c.path(key)
	b, err := c.read(path, key)
	switch {
	case err == nil:
		now := time.Now()
		_ = os.Chtimes(path, now, now) // when it was used last; who cannot write does without
		return b
	case errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, errDamaged):
		c.log.Warn("cache entry is damaged, or another user's, and is removed", "file", path)
		_ = os.Remove(path) // it is a miss either way
	default:
		c.log.Warn("cache entry cannot be read", "file", path, "error", err)
	}
	return nil
}

// errDamaged says that an entry is not what was written.
var errDamaged = errors.New("cache entry is damaged")

// read reads an entry and checks it.
func (c *Cache) read(path, key string) (*body, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEntryBytes+1))
	if err != nil {
		return nil, err
	}
	secret, err := c.secret()
	if err != nil {
		return nil, err
	}
	return decode(data, key, secret)
}

// decode checks an entry's bytes: the checksum in the first line, and that it
// is the entry of the key.
func decode(data []byte, key string, secret []byte) (*body, error) {
	sum, rest, found := bytes.Cut(data, []byte("\n"))
	if !found || len(data) > maxEntryBytes || !hmac.Equal(sum, checksum(rest, secret)) {
		return nil, errDamaged
	}
	var b body
	if json.Unmarshal(rest, &b) != nil || b.Key != key {
		return nil, errDamaged
	}
	return &b, nil
}

// checksum returns the first line of an entry: an HMAC, or a hash without a secret.
func checksum(raw, secret []byte) []byte {
	h := sha256.New()
	if len(secret) > 0 {
		h = hmac.New(sha256.New, secret)
	}
	_, _ = h.Write(raw) // never fails
	return hex.AppendEncode(nil, h.Sum(nil))
}

// put keeps an answer. Making a file may take longer than all the rest, so it is
// done concurrently with the call.
func (c *Cache) put(key, name string, resp *model.Response) {
	b := &body{
		Key: key, Model: name, CreatedAt: time.Now().UTC().Truncate(time.Millisecond), CostMicros: resp.CostMicros,
		Response: response{
			Text: resp.Text, Thoughts: resp.Thoughts, Separated: resp.Separated,
			Citations: resp.Citations, Usage: resp.Usage, StopReason: resp.StopReason,
			Model: resp.Model, Notes: resp.Notes,
		},
	}
	c.mu.Lock()
	busy, alone := len(c.writing) >= maxWriting, c.writing[key] == nil
	if alone && !busy {
		c.writing[key] = b
	}
	c.mu.Unlock()
	switch {
	case !alone: // the same answer is being written
	case busy:
		c.save(b)
	default:
		go func() {
			c.save(b)
			c.mu.Lock()
			defer c.mu.Unlock()
			if delete(c.writing, key); len(c.writing) == 0 {
				c.idle.Broadcast()
			}
		}()
	}
}

// save writes an entry. That it cannot is not a reason to fail.
func (c *Cache) save(b *body) {
	raw, err := json.Marshal(b)
	if err == nil && len(raw) < maxEntryBytes {
		err = c.write(c.path(b.Key), raw)
	}
	if err != nil {
		c.log.Warn("answer cannot be kept in the cache", "error", err)
	}
}

// temporary begins the names of files that are being written.
const temporary = ".writing-"

// write puts an entry in its place as a whole. It is not flushed: the checksum
// tells what a power loss left half.
func (c *Cache) write(path string, raw []byte) (err error) {
	secret, err := c.secret()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(c.dir, temporary+"*")
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(c.dir, 0o700); err != nil {
			return err
		}
		f, err = os.CreateTemp(c.dir, temporary+"*")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Concat(checksum(raw, secret), []byte("\n"), raw))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// keyIn returns the key that the name of an entry's file holds, and whether it
// is one.
func keyIn(name string) (string, bool) {
	key, ok := strings.CutSuffix(name, suffix)
	if !ok || len(key) != 2*sha256.Size {
		return "", false
	}
	_, err := hex.DecodeString(key)
	return key, err == nil
}
