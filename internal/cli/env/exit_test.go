package env

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
)

func TestExitStatus(t *testing.T) {
	t.Parallel()
	code := func(c perdure.Code) error { return fmt.Errorf("do: %w", &perdure.Error{Code: c}) }
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"none", nil, 0},
		{"unknown", io.EOF, 1},
		{"internal", code(perdure.CodeInternal), 1},
		{"damaged", code(perdure.CodeDamaged), 1},
		{"invalid", code(perdure.CodeInvalid), 2},
		{"budget", code(perdure.CodeBudgetExceeded), 3},
		{"not found", code(perdure.CodeNotFound), 4},
		{"conflict", code(perdure.CodeConflict), 5},
		{"lease lost", code(perdure.CodeLeaseLost), 5},
		{"unavailable", code(perdure.CodeUnavailable), 7},
		{"interrupted", fmt.Errorf("run: %w", ErrInterrupted), 130},
		{"own", fmt.Errorf("run: %w", &Exit{Status: StatusIncomplete}), 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := StatusOf(test.err); got != test.want {
				t.Errorf("exit status %d, want %d", got, test.want)
			}
		})
	}
}

func TestPrintError(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"hint", &perdure.Error{Op: "open store", Msg: "it is damaged", Hint: "restore it"},
			"perdure: error: open store: it is damaged\nperdure: hint: restore it\n"},
		{"no hint", io.EOF, "perdure: error: EOF\n"},
		{"lines and controls", &perdure.Error{Msg: "a\n\x1b[31mb\n"}, "perdure: error: a\n  ␛[31mb\n"},
		{"said already", &Exit{Status: 3}, ""},
		{"outcome", &Exit{Status: 3, Msg: "m", Hint: "h"}, "perdure: error: m\nperdure: hint: h\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			New(Process{Stderr: &b}).PrintError(test.err)
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
