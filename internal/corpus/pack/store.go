package pack

import "io"

// StoreError is an error of the store, as distinct from one of the files packed.
type StoreError struct{ Err error }

// Error returns the store's error text.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// Store packs the files that fill adds, and passes the pack to put while it is built.
// Errors of put are returned as a [*StoreError], those of fill unchanged; after one, nothing
// refers to the content that put stored. fill runs on the caller's goroutine, put on
// another one, which has ended when Store returns.
func Store[Ref any](limits Limits, put func(io.Reader) (Ref, error), fill func(*Builder) error) (*Manifest, Ref,
	error) {
	out, in := io.Pipe()
	var ref Ref
	stored := make(chan error, 1)
	go func() { // ends with the pipe, which is closed below
		var err error
		if ref, err = put(out); err != nil {
			err = &StoreError{err}
		}
		_ = out.CloseWithError(err)
		stored <- err
	}()
	b := NewBuilder(in, limits)
	err := fill(b)
	_ = in.CloseWithError(err)
	storeErr := <-stored
	if err == nil {
		err = storeErr
	}
	if err != nil {
		return nil, ref, err
	}
	manifest, err := b.Manifest()
	return manifest, ref, err
}
