package state

import (
	"bytes"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/env"
)

func TestVagueNames(t *testing.T) {
	t.Parallel()
	for name, vague := range map[string]bool{
		"x": true, "_": true, "i": true, "data1": true, "data": true, "Data_2": true, "tmp": true, "xx": true, "foo3": true,
		"x1":          true,
		"error_count": false, "database": false, "answer": false, "data_of_2024": false, "id": false, "valid": false,
		"item_list": false,
	} {
		var errs bytes.Buffer
		c := &commands{Env: env.New(env.Process{Stderr: &errs})}
		c.hintName(name)
		if got := strings.Contains(errs.String(), "hint:"); got != vague {
			t.Errorf("%s: %q", name, errs.String())
		}
	}
}

// A terminal keeps its session, and so do commands without one.
func TestLogin(t *testing.T) {
	t.Parallel()
	first := login()
	if first != login() || first != noTerminal && !strings.HasPrefix(first, "login-") {
		t.Errorf("%q, then %q", first, login())
	}
}
