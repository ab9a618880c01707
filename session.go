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

// Session represents a process in the store; leases belong to a session. A living session
// holds a lock that the kernel (SQLite) or the database server (PostgreSQL) releases when
// the process dies, so that other processes notice.
type Session struct {
	s    *Store
	key  int64
	name string
	turn atomic.Int64 // the tree of the last claim

	file *os.File           // locked, on SQLite
	lock *sqldb.SessionLock // on PostgreSQL
	stop context.CancelFunc
	wg   sync.WaitGroup
	once sync.Once
}

// beatShare is how often a session on PostgreSQL writes its row within the LeaseTTL.
const beatShare = 3

const (
	sqlNewSession = `INSERT INTO session (id, name, kind, host, pid, started_at, seen_at)
		VALUES ($1, $2, $3, $4, $5, $6, $6)`
	sqlBeat       = `UPDATE session SET seen_at = $2 WHERE id = $1`
	sqlEndSession = `UPDATE session SET ended_at = $2 WHERE id = $1`
)

// OpenSession opens a session of this process, to claim and run tasks. kind is for people:
// "run", "serve". Close ends the session; if the process dies, the session is dead.
func (s *Store) OpenSession(ctx context.Context, kind string) (*Session, error) {
	const op = "open session"
	if kind == "" || !storable(kind) {
		return nil, invalidf(op, "kind is empty or not UTF-8 text")
	}
	ss := &Session{s: s, name: "sess-" + strings.TrimPrefix(string(newTreeID()), treePrefix) +
		itoa(time.Now().UnixMilli()%1e6)}
	if err := ss.lockFile(); err != nil {
		return nil, wrap(op, err)
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
		return nil, errors.Join(wrap(op, err), ss.unlock())
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

// lockFile takes the lock before the session's row exists, so that processes that read the
// row find the lock taken.
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
		if err := os.Remove(ss.file.Name()); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, ss.file.Close())
	}
	if ss.lock != nil {
		errs = append(errs, ss.lock.Close())
	}
	return errors.Join(errs...)
}

func (ss *Session) beat(ctx context.Context) {
	ss.s.repeat(ctx, ss.s.cfg.LeaseTTL/beatShare, func(base context.Context) {
		if err := errors.Join(ss.lock.Renew(ctx), ss.update(base, sqlBeat)); err != nil {
			ss.s.log.Warn("renew session", "session_id", ss.name, "error", err)
		}
	})
}

// update runs a statement that writes the current time to the session's row.
func (ss *Session) update(ctx context.Context, q string) error {
	return ss.s.w.do(context.WithoutCancel(ctx), opFunc(func(ctx context.Context, b *batch) error {
		_, err := b.tx.Exec(ctx, q, ss.key, b.now)
		return err
	}))
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
// PostgreSQL. If a child process inherits it, the session lives at least as long as the
// child.
func (ss *Session) LockFile() *os.File { return ss.file }

// Close ends the session. Other sessions may then take over leases that were not settled or
// released. It may be called twice.
func (ss *Session) Close(ctx context.Context) error {
	var err error
	ss.once.Do(func() {
		ss.stop()
		ss.wg.Wait()
		if err := ss.update(ctx, sqlEndSession); err != nil { // without its lock the session is dead anyway
			ss.s.log.Warn("end session", "session_id", ss.name, "error", err)
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

const opSessions = "read sessions"

// deadSessions lists the dead sessions that have leases.
func (s *Store) deadSessions(ctx context.Context) ([]int64, error) {
	var dead []int64
	for after := int64(0); ; {
		var key int64
		err := s.db.QueryRow(ctx, sqlNextLeasing, []any{after}, &key)
		if err != nil {
			return dead, wrap(opSessions, ignoreNoRows(err))
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

// alive reports whether the process of a session lives.
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
		return false, wrap(opSessions, ignoreNoRows(err))
	}
	if ended != 0 {
		return false, nil
	}
	if s.db.Name == "sqlite" {
		return s.lockHeld(name)
	}
	return s.connected(ctx, key, seen)
}

// lockHeld reports whether another process holds the lock of a session. A missing file
// means that the session is dead, because the file is created before the session's row.
func (s *Store) lockHeld(name string) (bool, error) {
	f, err := os.Open(s.sessionPath(name))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, wrap(opSessions, err)
	}
	defer f.Close()
	held, err := filelock.Held(f)
	return held, wrap(opSessions, err)
}

// connected reports whether a session on PostgreSQL lives: its connection holds the lock,
// and it has written its row within the LeaseTTL.
func (s *Store) connected(ctx context.Context, key, seen int64) (bool, error) {
	held, err := s.db.LockedSessions(ctx)
	if err != nil {
		return false, wrap(opSessions, err)
	}
	now, err := s.db.Now(ctx)
	return held[key] && now-seen < s.cfg.LeaseTTL.Microseconds(), wrap(opSessions, err)
}

// sessionGrace is the age from which on the file of a session may be removed: a newer one
// may have been created and not locked yet.
const sessionGrace = time.Minute

const sqlSessionLeases = `SELECT EXISTS (SELECT 1 FROM session s JOIN task_hot h ON h.session = s.id WHERE s.name = $1)`

// sweepSessions removes the files of killed processes whose tasks other processes have
// taken over.
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
			continue // ended or begun just now
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
