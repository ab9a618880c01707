package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	handoffcmd "github.com/perdure/perdure/internal/cli/handoff"
)

// Errors of the file get the codes of exit statuses; others are unchanged.
func TestTranslated(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want perdure.Code
	}{
		{&handoff.Error{Kind: handoff.ErrNotFound}, perdure.CodeNotFound},
		{&handoff.Error{Kind: handoff.ErrNoTask}, perdure.CodeNotFound},
		{&handoff.Error{Kind: handoff.ErrContract}, perdure.CodeNotFound},
		{&handoff.Error{Kind: handoff.ErrSyntax}, perdure.CodeInvalid},
		{&handoff.Error{Kind: handoff.ErrInvalid}, perdure.CodeInvalid},
		{&handoff.Error{Kind: handoff.ErrLimit}, perdure.CodeInvalid},
		{&handoff.Error{Kind: handoff.ErrReadOnly}, perdure.CodeConflict},
		{&handoff.Error{Kind: handoff.ErrConflict, Hint: "h"}, perdure.CodeConflict},
		{&handoff.Error{Kind: handoff.ErrConflict, Err: context.Canceled}, perdure.CodeCanceled},
		{&handoff.Error{Kind: handoff.ErrOtherTask}, perdure.CodeConflict},
		{&handoff.Error{Op: "write", Err: errors.New("no space left on device")}, perdure.CodeInternal},
		{&perdure.Error{Code: perdure.CodeLeaseLost}, perdure.CodeLeaseLost},
	} {
		wrapped := fmt.Errorf("more: %w", test.err)
		got := handoffcmd.Translated(wrapped)
		if perdure.CodeOf(got) != test.want {
			t.Errorf("%v has the code %q, want %q", test.err, perdure.CodeOf(got), test.want)
		}
		var own *handoff.Error
		if errors.As(test.err, &own) && perdure.HintOf(got) != own.Hint {
			t.Errorf("%v: the hint is %q", test.err, perdure.HintOf(got))
		}
	}
	if handoffcmd.Translated(nil) != nil {
		t.Error("nothing became an error")
	}
}
