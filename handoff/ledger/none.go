package ledger

import (
	"context"

	"github.com/perdure/perdure"
)

// None is used where there is no store, as in a fresh clone: it has no ledger, and
// the file is all that is known about the work.
type None struct{}

var errNone = &perdure.Error{Code: perdure.CodeNotFound, Op: "read handoff", Msg: "there is no store"}

// Handoff fails with CodeNotFound.
func (None) Handoff(context.Context, Ref) (Handoff, error) {
	return Handoff{}, errNone
}

// HandoffEntries fails with CodeNotFound.
func (None) HandoffEntries(context.Context, ID, int64, int) ([]Entry, error) {
	return nil, errNone
}

// WriteHandoff fails with CodeNotFound.
func (None) WriteHandoff(context.Context, Write) (Handoff, error) {
	return Handoff{}, errNone
}

// ClaimHandoff fails with CodeNotFound.
func (None) ClaimHandoff(context.Context, ClaimSpec) (Claim, error) {
	return Claim{}, errNone
}

// ReleaseHandoff fails with CodeNotFound.
func (None) ReleaseHandoff(context.Context, Ref, string) error { return errNone }
