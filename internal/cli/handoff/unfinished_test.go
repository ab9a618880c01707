package handoff_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/cli/handoff"
)

func TestUnfinished(t *testing.T) {
	t.Parallel()
	const checkpoint = `{"completedSteps": [{"step": "a", "timestamp": "2026-02-28T10:00:00Z"}], "metadata": {"createdBy": "x",
		"lastUpdatedAt": "2026-02-28T10:00:00Z"}}`
	for name, test := range map[string]struct{ text, token, want string }{
		"no file": {},
		"none":    {text: `{"activePrd": {"id": "p", "checkpoint": null}}`},
		"one": {text: `{"activePrd": {"id": "p", "currentStory": "US-1", "checkpoint": ` + checkpoint + `}}`,
			want: "unfinished work on \"p/US-1\" (1 completed step, by \"x\", 2026-02-28T10:00:00Z); `perdure " +
				"handoff resume` continues it"},
		"cut steps": {text: `{"activePrd": {"id": "p", "checkpoint": {"completedSteps": ["a"], "cut": {"completedSteps": 4}}}}`,
			want: "unfinished work on \"p\" (5 completed steps, -); `perdure handoff resume` continues it"},
		"ad hoc": {text: `{"adhocQueue": [{"id": "a b", "checkpoint": {}}]}`,
			want: "unfinished work on \"adhoc:a b\" (0 completed steps, -); `perdure handoff resume --task 'adhoc:a " +
				"b'` continues it"},
		"two": {text: `{"activePrd": {"id": "p", "checkpoint": {}}, "adhocQueue": [{"id": "a", "checkpoint": {}}]}`,
			want: "unfinished work on \"p\" (0 completed steps, -); `perdure handoff resume` continues it; also on " +
				"1 other task"},
		"one's own":    {text: `{"activePrd": {"id": "p", "checkpoint": ` + checkpoint + `}}`, token: "t"},
		"damaged":      {text: `{"activePrd": {"id": "p", "checkpoint": {`},
		"no object":    {text: `{"activePrd": {"id": "p", "checkpoint": 7}}`},
		"twice an id":  {text: `{"adhocQueue": [{"id": "a", "checkpoint": {}}, {"id": "a"}]}`},
		"a large file": {text: `{"activePrd": {"id": "p", "checkpoint": {}}, "blob": "` + strings.Repeat("x", 1<<20) + `"}`},
		"an escape": {text: `{"activePrd": {"id": "p\u001b[2J\n", "checkpoint": {}}}`,
			want: "unfinished work on \"p␛[2J\" (0 completed steps, -); `perdure handoff resume` continues it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if test.text != "" {
				if err := os.WriteFile(filepath.Join(dir, "builder-state.json"), []byte(test.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			getenv := func(name string) string {
				if name == "PERDURE_HANDOFF_TOKEN" {
					return test.token
				}
				return ""
			}
			if got := handoff.Unfinished(dir, getenv); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
