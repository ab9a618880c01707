package cache

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is an answer that is kept.
type Entry struct {
	Key   string `json:"key"`
	Model string `json:"model"`
	// Bytes is the size of the file.
	Bytes     int64     `json:"bytes"`
	CreatedAt time.Time `json:"created_at"`
	// UsedAt is when it was written or last answered a request.
	UsedAt time.Time `json:"used_at"`
	// InputTokens, OutputTokens and CostUSD are what the answer took when it
	// was given, and what each use of it saves; CostUSD is nil when unknown.
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"`
	// Damaged entries, and those made with another secret, are misses; the rest of
	// what they hold is not known.
	Damaged bool `json:"damaged,omitempty"`
}

const microsPerDollar = 1e6

// List returns the entries, those used last first.
func (c *Cache) List(ctx context.Context) ([]Entry, error) {
	c.Close()
	var all []Entry
	err := c.each(ctx, func(path, key string, info fs.FileInfo) error {
		e := Entry{Key: key, Bytes: info.Size(), UsedAt: info.ModTime().UTC()}
		b, err := c.read(path, key)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it went just now
		case errors.Is(err, errDamaged):
			e.Damaged = true
		case err != nil:
			return err
		default:
			e.Model, e.CreatedAt = b.Model, b.CreatedAt
			e.InputTokens, e.OutputTokens = b.Response.Usage.InputTokens, b.Response.Usage.OutputTokens
			if b.CostMicros != nil {
				e.CostUSD = new(float64(*b.CostMicros) / microsPerDollar)
			}
		}
		all = append(all, e)
		return nil
	})
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(b.UsedAt.Compare(a.UsedAt), strings.Compare(a.Key, b.Key))
	})
	return all, err
}

// each calls do for the file of every entry.
func (c *Cache) each(ctx context.Context, do func(path, key string, info fs.FileInfo) error) error {
	files, err := os.ReadDir(c.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		key, ok := keyIn(d.Name())
		if d.IsDir() || !ok {
			continue
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went just now
		}
		if err != nil {
			return err
		}
		if err := do(filepath.Join(c.dir, d.Name()), key, info); err != nil {
			return err
		}
	}
	return nil
}

// Stats is the cache in figures.
type Stats struct {
	Dir     string `json:"dir"`
	Entries int    `json:"entries"`
	Damaged int    `json:"damaged,omitempty"`
	Bytes   int64  `json:"bytes"`
	// InputTokens, OutputTokens and CostUSD are what all answers took when
	// they were given. CostUSD is the sum of those whose price is known, nil if that of
	// none is.
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd"`
	// OldestUse and NewestUse are nil when the cache is empty.
	OldestUse *time.Time   `json:"oldest_use"`
	NewestUse *time.Time   `json:"newest_use"`
	Models    []ModelStats `json:"models"`
}

// ModelStats is the part of one model.
type ModelStats struct {
	Model   string `json:"model"`
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
}

// Stats counts the entries.
func (c *Cache) Stats(ctx context.Context) (Stats, error) {
	all, err := c.List(ctx)
	s := Stats{Dir: c.dir, Entries: len(all), Models: []ModelStats{}}
	for i := range all {
		s.add(&all[i])
	}
	slices.SortFunc(s.Models, func(a, b ModelStats) int { return strings.Compare(a.Model, b.Model) })
	if len(all) > 0 {
		s.NewestUse, s.OldestUse = &all[0].UsedAt, &all[len(all)-1].UsedAt
	}
	return s, err
}

func (s *Stats) add(e *Entry) {
	s.Bytes += e.Bytes
	if e.Damaged {
		s.Damaged++
		return
	}
	s.InputTokens += e.InputTokens
	s.OutputTokens += e.OutputTokens
	if e.CostUSD != nil {
		if s.CostUSD == nil {
			s.CostUSD = new(float64)
		}
		*s.CostUSD += *e.CostUSD
	}
	i := slices.IndexFunc(s.Models, func(m ModelStats) bool { return m.Model == e.Model })
	if i < 0 {
		s.Models = append(s.Models, ModelStats{Model: e.Model})
		i = len(s.Models) - 1
	}
	s.Models[i].Entries++
	s.Models[i].Bytes += e.Bytes
}

// Selection says which entries are removed: those to which all that is set
// applies. Damaged entries go with any selection. The zero value selects
// nothing but those.
type Selection struct {
	// All selects every entry.
	All bool
	// Key is the beginning of a key.
	Key string
	// Model is what the configuration calls the model.
	Model string
	// Unused selects what was not used for so long.
	Unused time.Duration
	// KeepBytes, when not nil, keeps the entries used last as far as they
	// have so many bytes together, and selects the others.
	KeepBytes *int64
	// DryRun removes nothing.
	DryRun bool
}

// Evicted counts the entries that were removed, or would be with DryRun.
type Evicted struct {
	DryRun  bool     `json:"dry_run,omitempty"`
	Entries int      `json:"entries"`
	Bytes   int64    `json:"bytes"`
	Keys    []string `json:"keys"`
}

// staleWriting is the age at which a file that is being written belongs to a
// process that is gone.
const staleWriting = time.Hour

// Evict removes entries, and what writers that died left behind.
func (c *Cache) Evict(ctx context.Context, sel Selection) (Evicted, error) {
	out := Evicted{DryRun: sel.DryRun, Keys: []string{}}
	all, err := c.List(ctx)
	if err != nil {
		return out, err
	}
	var kept int64
	now := time.Now()
	for i := range all {
		e := &all[i]
		if !e.Damaged && !sel.selects(e, now, kept) {
			kept += e.Bytes
			continue
		}
		if !sel.DryRun {
			if err := os.Remove(c.path(e.Key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return out, err
			}
		}
		out.Entries, out.Bytes, out.Keys = out.Entries+1, out.Bytes+e.Bytes, append(out.Keys, e.Key)
	}
	if sel.DryRun {
		return out, nil
	}
	return out, c.sweep(now)
}

// selects reports whether an entry goes. kept is the size of those used later
// that stay.
func (s *Selection) selects(e *Entry, now time.Time, kept int64) bool {
	named := s.All || s.Key != "" || s.Model != "" || s.Unused > 0 || s.KeepBytes != nil
	return named &&
		strings.HasPrefix(e.Key, s.Key) &&
		(s.Model == "" || e.Model == s.Model) &&
		now.Sub(e.UsedAt) >= s.Unused &&
		(s.KeepBytes == nil || kept+e.Bytes > *s.KeepBytes)
}

// sweep removes the files of writers that died.
func (c *Cache) sweep(now time.Time) error {
	left, err := filepath.Glob(filepath.Join(c.dir, temporary+"*"))
	for _, path := range left {
		if info, statErr := os.Stat(path); statErr == nil && now.Sub(info.ModTime()) > staleWriting {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return err
}
