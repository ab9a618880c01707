package tree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// The completion status of a session's state, which no task decides, is that of its file until
// the state changes here.
func TestStatusOfSession(t *testing.T) {
	t.Parallel()
	ref := perdure.StateRef{Scope: perdure.ScopeSession, Session: "s"}
	for _, status := range []string{"error", "cancelled", "complete"} {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			testdb.Each(t, func(t *testing.T, s *perdure.Store) {
				text := strings.Replace(goodState, `"incomplete"`, `"`+status+`"`, 1)
				importText(t, s, text)
				first := stateText(t, s, ref)
				wantStatus(t, first, status)
				again := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
				importText(t, again, string(first))
				if second := stateText(t, again, ref); string(second) != string(first) {
					t.Errorf("exported again:\n%s\nat first:\n%s", second, first)
				}
				set(t, s, ref, "n", "2")
				wantStatus(t, stateText(t, s, ref), "incomplete")
				set(t, s, ref, "Final", `"done"`)
				wantStatus(t, stateText(t, s, ref), "complete")
			})
		})
	}
}

func wantStatus(t *testing.T, text []byte, status string) {
	t.Helper()
	if want := `"completion_status": "` + status + `"`; !strings.Contains(string(text), want) {
		t.Errorf("no %s in\n%s", want, text)
	}
}

// importText imports a state strictly.
func importText(t *testing.T, s *perdure.Store, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := must[*tree.Report](t)(tree.Import(t.Context(), s, tree.ImportConfig{Path: file, Strict: true}))
	if r.Refused || r.States != 1 {
		t.Fatalf("%+v", r)
	}
}
