package ledger

import (
	"context"

	"github.com/perdure/perdure"
)

// None has no ledgers. It is used without a store, such as in a new clone, where only the
// file has the work.
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
