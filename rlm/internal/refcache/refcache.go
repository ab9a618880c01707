// Package refcache keeps shared values loaded while they are in use, and a few
// unused ones.
package refcache

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
)

// Set loads values by their keys and closes them. Its methods may be called from
// many goroutines.
type Set[K comparable, V io.Closer] struct {
	idleMost int

	mu    sync.Mutex // guards the fields below and those of the entries
	byKey map[K]*Entry[K, V]
	idle  []*Entry[K, V] // oldest first
}

// New returns a set that keeps up to idleMost unused values.
func New[K comparable, V io.Closer](idle int) *Set[K, V] {
	return &Set[K, V]{idleMost: idle, byKey: make(map[K]*Entry[K, V])}
}

// Entry is a use of a value.
type Entry[K comparable, V io.Closer] struct {
	// Value is what was loaded.
	Value V

	key    K
	loaded chan struct{} // closed when Value or err is set
	err    error
	users  int
	done   bool // the value is not needed again
}

// Get returns the value of a key, which load makes when it is not there. Each Get
// that succeeds is followed by a Put.
func (s *Set[K, V]) Get(ctx context.Context, key K, load func(context.Context) (V, error)) (*Entry[K, V], error) {
	for {
		e, mine := s.enter(key)
		if mine {
			s.fill(ctx, e, load)
		}
		select {
		case <-e.loaded:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), s.Put(e))
		}
		if e.err == nil {
			return e, nil
		}
		closeErr := s.Put(e)
		if mine || ctx.Err() != nil || !errors.Is(e.err, context.Canceled) {
			return nil, errors.Join(e.err, closeErr)
		}
		// The goroutine that loaded it was stopped, and this one is not: load it here.
	}
}

// fill loads a value. When that fails the next one who asks tries again.
func (s *Set[K, V]) fill(ctx context.Context, e *Entry[K, V], load func(context.Context) (V, error)) {
	value, err := load(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Value, e.err = value, err
	if err != nil {
		delete(s.byKey, e.key)
	}
	close(e.loaded)
}

func (s *Set[K, V]) enter(key K) (e *Entry[K, V], mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e = s.byKey[key]
	if e == nil {
		e = &Entry[K, V]{key: key, loaded: make(chan struct{})}
		s.byKey[key] = e
		mine = true
	}
	if e.users == 0 {
		s.forget(e)
	}
	e.users++
	return e, mine
}

// forget takes an entry out of the idle ones. The caller holds mu.
func (s *Set[K, V]) forget(e *Entry[K, V]) {
	s.idle = slices.DeleteFunc(s.idle, func(idle *Entry[K, V]) bool { return idle == e })
}

// Put ends a use. An unused value stays loaded for a while.
func (s *Set[K, V]) Put(e *Entry[K, V]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.users--
	if e.users > 0 {
		return nil
	}
	s.idle = append(s.idle, e)
	if e.err != nil || e.done {
		return s.drop(e)
	}
	if len(s.idle) > s.idleMost {
		return s.drop(s.idle[0])
	}
	return nil
}

// Finish notes that the value is not needed again.
func (s *Set[K, V]) Finish(e *Entry[K, V]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.done = true
}

// drop closes an idle value. The caller holds mu.
func (s *Set[K, V]) drop(e *Entry[K, V]) error {
	s.forget(e)
	if s.byKey[e.key] == e {
		delete(s.byKey, e.key)
	}
	if e.err != nil {
		return nil
	}
	return e.Value.Close()
}

// Close drops all values, which must not be in use.
func (s *Set[K, V]) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for len(s.idle) > 0 {
		errs = append(errs, s.drop(s.idle[0]))
	}
	return errors.Join(errs...)
}
