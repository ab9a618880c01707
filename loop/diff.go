package loop

import (
	"context"

	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/workspace/diff"
)

// diff shows what an iteration changed: files with a regression first.
func (r *run) diff(ctx context.Context, out *state.Outcome) string {
	var first []string
	for _, g := range out.Regressions {
		first = append(first, g.Files...)
	}
	return diff.Snapshots(ctx, r.files, out.Before, out.After, first)
}
