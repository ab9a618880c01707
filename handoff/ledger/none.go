package ledger

import (
	"context"

	"github.com/perdure/perdure"
)

// None are the ledgers of who has no store, as in a fresh clone: there is none of
// any work, and what the file shows is all that is known.
type None struct{}

var errNone = &perdure.Error{Code: perdure.CodeNotFound, Op: "read handoff", Msg: "there is no store"}

// Handoff fails with CodeNotFound.
func (None) Handoff(context.Context, perdure.HandoffRef) (perdure.Handoff, error) {
	return perdure.Handoff{}, errNone
}

// HandoffEntries fails with CodeNotFound.
func (None) HandoffEntries(context.Context, perdure.HandoffID, int64, int) ([]perdure.HandoffEntry, error) {
	return nil, errNone
}

// WriteHandoff fails with CodeNotFound.
func (None) WriteHandoff(context.Context, perdure.HandoffWrite) (perdure.Handoff, error) {
	return perdure.Handoff{}, errNone
}

// ClaimHandoff fails with CodeNotFound.
func (None) ClaimHandoff(context.Context, perdure.HandoffClaimSpec) (perdure.HandoffClaim, error) {
	return perdure.HandoffClaim{}, errNone
}

// ReleaseHandoff fails with CodeNotFound.
func (None) ReleaseHandoff(context.Context, perdure.HandoffRef, string) error { return errNone }
