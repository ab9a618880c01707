package perdure

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/heads"
)

const (
	// headsInterval is how often the heads of changed trees are recorded at least.
	headsInterval = time.Minute
	// headsPause is the shortest time between two records, unless the store is closed.
	headsPause = time.Second
)

// recorder records the heads of the trees that this process changed outside of the store.
type recorder struct {
	s    *Store
	file string
	wake chan struct{}

	mu      sync.Mutex // guards changed; the writer holds it after each transaction
	changed map[int64]chain.State

	recording sync.Mutex // guards the fields below
	store     string     // the ID, "" until it is read
	warned    bool
}

func newRecorder(s *Store) *recorder {
	return &recorder{s: s, file: heads.Path(s.cfg.Heads, s.location()), wake: make(chan struct{}, 1),
		changed: make(map[int64]chain.State)}
}

// location returns where the store is: its folder, or the database on the server.
func (s *Store) location() string {
	if s.cfg.DSN != "" {
		u, err := url.Parse(s.cfg.DSN)
		if err != nil {
			return "postgres"
		}
		return u.Host + u.Path + "?" + u.Query().Get("search_path")
	}
	dir, err := filepath.Abs(s.cfg.Dir)
	if err != nil {
		return s.cfg.Dir
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// add notes the heads of a committed transaction. They are recorded soon if a tree ended.
func (r *recorder) add(changed map[int64]chain.State, ended bool) {
	r.mu.Lock()
	for tree, state := range changed {
		r.changed[tree] = state
	}
	r.mu.Unlock()
	if !ended {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *recorder) run(ctx context.Context) {
	tick := time.NewTicker(headsInterval)
	defer tick.Stop()
	pause := time.NewTicker(headsPause)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.wake:
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
		}
		r.record(r.s.base)
	}
}

// record appends the heads of the changed trees to the file. A failure is logged once: the
// store works without the file, and an agent cannot cause it.
func (r *recorder) record(ctx context.Context) {
	r.recording.Lock()
	defer r.recording.Unlock()
	if r.none() {
		return
	}
	err := r.append(ctx)
	if err != nil && !r.warned {
		r.warned = true
		r.s.log.Warn("record the heads of the log", "error", err)
	}
}

func (r *recorder) none() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.changed) == 0
}

func (r *recorder) append(ctx context.Context) error {
	if r.store == "" {
		id, err := r.s.newID(ctx)
		if err != nil {
			return err
		}
		r.store = id
	}
	r.mu.Lock()
	changed := r.changed
	r.changed = make(map[int64]chain.State)
	r.mu.Unlock()
	now := time.Now().UTC()
	names, err := r.s.treeNames(ctx, slices.Collect(maps.Keys(changed)))
	lines := make([]heads.Line, 0, len(changed))
	for key, state := range changed {
		name, known := names[key]
		if key != 0 && !known && err == nil {
			continue // removed
		}
		lines = append(lines, heads.Line{Store: r.store, Tree: string(name), Key: key, Events: state.Events,
			Head: state.Head.String(), At: now})
	}
	return heads.Append(r.file, lines)
}

// treeNames returns the IDs of trees that exist, from the cache or the database; after an error
// those in the cache.
func (s *Store) treeNames(ctx context.Context, keys []int64) (map[int64]TreeID, error) {
	names := make(map[int64]TreeID, len(keys))
	var missing []int64
	s.mu.Lock()
	for _, key := range keys {
		if t, ok := s.trees[key]; ok {
			names[key] = t.ID
		} else if key != 0 { // the chain of no tree
			missing = append(missing, key)
		}
	}
	s.mu.Unlock()
	read, err := lookUpTrees(ctx, s.db.Query, sqlTreesByNum, missing)
	maps.Copy(names, read)
	return names, wrap("read trees", err)
}

const (
	sqlStoreID    = `SELECT store FROM seq WHERE id = 1`
	sqlSetStoreID = `UPDATE seq SET store = $1 WHERE id = 1 AND store = ''`
)

// newID returns the ID of the store, and makes one if it has none.
func (s *Store) newID(ctx context.Context) (id string, err error) {
	if err := s.db.QueryRow(ctx, sqlStoreID, nil, &id); err != nil || id != "" {
		return id, err
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // does not fail
	err = s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		if _, err := b.tx.Exec(ctx, sqlSetStoreID, hex.EncodeToString(random[:])); err != nil {
			return err
		}
		return b.tx.QueryRow(ctx, sqlStoreID, nil, &id)
	}))
	return id, err
}
