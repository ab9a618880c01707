package checkconfig_test

import (
	"testing"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect/checkconfig"
)

// A check of a file or a folder that was renamed is the same check; of another file it is not.
func TestMoved(t *testing.T) {
	t.Parallel()
	moves := []checkconfig.Move{{From: "bin/run.js", To: "bin/run.mjs"}, {From: "typing/a.py", To: "tests/typing/a.py"},
		{From: "typing/b.py", To: "tests/typing/b.py"}, {From: "kept.js", To: "kept.js"}}
	for _, tt := range []struct {
		name, old, now string
		weaker         bool
	}{
		{"a file", "node bin/run.js && eslint .", "node bin/run.mjs && eslint .", false},
		{"a folder", "mypy typing", "mypy tests/typing", false},
		{"a file in the folder", "mypy typing/a.py", "mypy tests/typing/a.py", false},
		{"another file", "mypy src/typing_extra.py", "mypy src/other.py", true},
		{"a part of a name", "mypy my-typing", "mypy my-tests/typing", true},
		{"dropped", "mypy typing && pytest", "pytest", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			script := func(s string) []byte { return []byte(`{"scripts": {"test": "` + s + `"}}` + "\n") }
			files := []checkconfig.File{{OldPath: "package.json", NewPath: "package.json", Class: project.Manifest,
				Old: script(tt.old), New: script(tt.now)}}
			weaker := false
			for _, f := range checkconfig.Compare(checkconfig.Moved(files, moves)) {
				weaker = weaker || f.Level == checkconfig.Weaker
			}
			if weaker != tt.weaker {
				t.Errorf("%q to %q: weaker %v", tt.old, tt.now, weaker)
			}
		})
	}
}
