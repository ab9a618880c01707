package pack

import "io"

// StoreError is an error of the store on its way through a pack's writer, to
// tell it from errors of what is packed.
type StoreError struct{ Err error }

// Error is that of the store.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// Store packs what fill adds, and has put keep it while it is built. Errors of
// put come as a [*StoreError], those of fill as they are; after one, nothing
// refers to what put has kept. fill runs on the caller's goroutine, put on
// another, which has ended when Store returns.
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
