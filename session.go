package perdure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Session is a process's presence in the store: what leases belong to. While it
// lives it holds a lock that its host's kernel (SQLite) or the database server
// (PostgreSQL) drops when the process dies, which is how others know.
type Session struct {
	s    *Store
	key  int64
	name string
	turn atomic.Int64 // the tree the last claim took from

	file *os.File           // locked, on SQLite
	lock *sqldb.SessionLock // on PostgreSQL
	stop context.CancelFunc
	wg   sync.WaitGroup
	once sync.Once
}

// beatShare: a session on PostgreSQL shows itself three times in a lease's life.
const beatShare = 3

const (
	sqlNewSession = `INSERT INTO session (id, name, kind, host, pid, started_at, seen_at) VALUES ($1, $2, $3, $4, $5, ` +
		`$6, $6)`
	sqlBeat       = `UPDATE session SET seen_at = $2 WHERE id = $1`
	sqlEndSession = `UPDATE session SET ended_at = $2 WHERE id = $1`
)

// OpenSession makes this process present in the store, to claim and run tasks.
// kind is a word for people: "run", "serve". Close it to end the presence; when
// the process dies, the kernel does.
func (s *Store) OpenSession(ctx context.Context, kind string) (*Session, error) {
	if kind == "" || !storable(kind) {
		return nil, invalidf("open session", "kind is empty or not text")
	}
	ss := &Session{s: s, name: "sess-" + strings.TrimPrefix(string(newTreeID()), treePrefix) +
		itoa(time.Now().UnixMilli()%1e6)}
	if err := ss.lockFile(); err != nil {
		return nil, wrap("open session", err)
	}
	host, _ := os.Hostname() // information only
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		b.cache.seq.session++
		ss.key = b.cache.seq.session
		_, err := b.tx.Exec(ctx, sqlNewSession, ss.key, ss.name, kind, host, os.Getpid(), b.now)
		return err
	}))
	if err == nil && s.db.Name != "sqlite" {
		ss.lock, err = s.db.LockSession(ctx, ss.key)
	}
	if err != nil {
		return nil, errors.Join(wrap("open session", err), ss.unlock())
	}
	beat, stop := context.WithCancel(s.base)
	ss.stop = stop
	if ss.lock != nil {
		ss.wg.Go(func() { ss.beat(beat) })
	}
	s.mu.Lock()
	s.sessions[ss.key] = ss
	s.mu.Unlock()
	return ss, nil
}

// lockFile takes the lock before the session's row exists, so that whoever sees
// the row finds the lock.
func (ss *Session) lockFile() error {
	if ss.s.db.Name != "sqlite" {
		return nil
	}
	f, err := os.OpenFile(ss.s.sessionPath(ss.name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create session file: %w", err)
	}
	ss.file = f
	if err := filelock.TryLock(f); err != nil {
		return errors.Join(fmt.Errorf("lock session file: %w", err), ss.unlock())
	}
	return nil
}

func (s *Store) sessionPath(name string) string { return filepath.Join(s.cfg.Dir, "sessions", name) }

func (ss *Session) unlock() error {
	var errs []error
	if ss.file != nil {
		errs = append(errs, os.Remove(ss.file.Name()), ss.file.Close())
	}
	if ss.lock != nil {
		errs = append(errs, ss.lock.Close())
	}
	return errors.Join(errs...)
}

func (ss *Session) beat(ctx context.Context) {
	tick := time.NewTicker(ss.s.cfg.LeaseTTL / beatShare)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := errors.Join(ss.lock.Renew(ctx),
			ss.s.w.do(context.WithoutCancel(ctx), opFunc(func(ctx context.Context, b *batch) error {
				_, err := b.tx.Exec(ctx, sqlBeat, ss.key, b.now)
				return err
			})))
		if err != nil {
			ss.s.log.Warn("renew session", "session_id", ss.name, "error", err)
		}
	}
}

// Session returns the open session of this process with that name.
func (s *Store) Session(name string) (*Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ss := range s.sessions {
		if ss.name == name {
			return ss, true
		}
	}
	return nil, false
}

// ID returns the session's name.
func (ss *Session) ID() string { return ss.name }

// LockFile returns the file whose lock shows that the session lives; nil on
// PostgreSQL. A child process that must not outlive the session's leases
// unnoticed inherits it.
func (ss *Session) LockFile() *os.File { return ss.file }

// Close ends the session. Leases that were not settled or released may then be
// taken over by others. It may be called twice.
func (ss *Session) Close(ctx context.Context) error {
	var err error
	ss.once.Do(func() {
		ss.stop()
		ss.wg.Wait()
		endErr := ss.s.w.do(context.WithoutCancel(ctx), opFunc(func(ctx context.Context, b *batch) error {
			_, err := b.tx.Exec(ctx, sqlEndSession, ss.key, b.now)
			return err
		}))
		if endErr != nil { // without its lock it counts as dead all the same
			ss.s.log.Warn("end session", "session_id", ss.name, "error", endErr)
		}
		ss.s.mu.Lock()
		delete(ss.s.sessions, ss.key)
		ss.s.mu.Unlock()
		err = ss.unlock()
	})
	return err
}

const (
	sqlNextLeasing = `SELECT session FROM task_hot WHERE session > $1 ORDER BY session LIMIT 1`
	sqlSessionRow  = `SELECT name, COALESCE(ended_at, 0), seen_at FROM session WHERE id = $1`
)

// deadSessions lists the sessions that hold leases and are dead.
func (s *Store) deadSessions(ctx context.Context) ([]int64, error) {
	var dead []int64
	for after := int64(0); ; {
		var key int64
		err := s.db.QueryRow(ctx, sqlNextLeasing, []any{after}, &key)
		if err != nil {
			return dead, wrap("look at sessions", ignoreNoRows(err))
		}
		alive, err := s.alive(ctx, key)
		if err != nil {
			return dead, err
		}
		if !alive {
			dead = append(dead, key)
		}
		after = key
	}
}

// alive tells whether the process of a session lives.
func (s *Store) alive(ctx context.Context, key int64) (bool, error) {
	s.mu.Lock()
	_, own := s.sessions[key]
	s.mu.Unlock()
	if own {
		return true, nil
	}
	var name string
	var ended, seen int64
	err := s.db.QueryRow(ctx, sqlSessionRow, []any{key}, &name, &ended, &seen)
	if err != nil {
		return false, wrap("look at sessions", ignoreNoRows(err))
	}
	if ended != 0 {
		return false, nil
	}
	if s.db.Name == "sqlite" {
		return s.lockHeld(name)
	}
	return s.connected(ctx, key, seen)
}

// lockHeld looks at the lock of another session. A missing file means dead: the
// file exists before the session's row does.
func (s *Store) lockHeld(name string) (bool, error) {
	f, err := os.OpenFile(s.sessionPath(name), os.O_RDWR, 0o600)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, wrap("look at session", err)
	}
	defer f.Close()
	held, err := filelock.Held(f)
	return held, wrap("look at session", err)
}

// connected tells by the server's lock and clock whether a session lives: one
// whose connection ended is dead at once, one that is silent after its time.
func (s *Store) connected(ctx context.Context, key, seen int64) (bool, error) {
	held, err := s.db.LockedSessions(ctx)
	if err != nil {
		return false, wrap("look at sessions", err)
	}
	now, err := s.db.Now(ctx)
	if err != nil {
		return false, wrap("look at sessions", err)
	}
	return held[key] && now-seen < s.cfg.LeaseTTL.Microseconds(), nil
}

// sessionGrace is the age below which a session's file is left alone: it may
// have been made and not locked yet.
const sessionGrace = time.Minute

const sqlSessionLeases = `SELECT EXISTS (SELECT 1 FROM session s JOIN task_hot h ON h.session = s.id WHERE s.name = $1)`

// sweepSessions removes the files of processes that were killed and whose tasks
// others have taken over.
func (s *Store) sweepSessions(ctx context.Context) error {
	if s.db.Name != "sqlite" {
		return nil
	}
	files, err := filepath.Glob(s.sessionPath("sess-*"))
	if err != nil {
		return wrap("sweep sessions", err)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < sessionGrace {
			continue // it ended just now, or began
		}
		name := filepath.Base(path)
		if _, own := s.Session(name); own {
			continue
		}
		held, err := s.lockHeld(name)
		if err != nil {
			return err
		}
		var leases bool
		if err := s.db.QueryRow(ctx, sqlSessionLeases, []any{name}, &leases); err != nil {
			return wrap("sweep sessions", err)
		}
		if held || leases {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return wrap("sweep sessions", err)
		}
	}
	return nil
}
