package risk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/risk"
)

// TestScriptsAreNoPaths: scripts of sed, awk, perl and ruby are no files, what they change is.
func TestScriptsAreNoPaths(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"sed -i s/.perdure/x/ a.go":                          "",
		"sed -i 's/a/..\\/b/' a.go":                          "",
		"sed -i -e 's#/etc/x#y#' -e 's/a_test.go/b/' a.go":   "",
		"sed -n '/.perdure\\/x/p' a.go":                      "",
		"sed -i 's/a/b/' a_test.go":                          "write_test",
		"sed -i.bak -e s/a/b/ a_test.go":                     "write_test",
		"sed --in-place=.orig --expression=s/a/b/ a_test.go": "write_test",
		"sed -Ei s/a/b/ .perdure/config.yaml":                "write_perdure",
		"sed -i -f fix.sed a_test.go":                        "write_test",
		"sed 's/a/b/w a_test.go' a.go":                       "write_test",
		"sed -n '1w .perdure/x' a.go":                        "write_perdure",
		"sed 's/a/b/' a_test.go":                             "",
		"sed 's/x w y/z/' a_test.go":                         "",
		"perl -pi -e 's/.perdure/x/' a.go":                   "",
		"perl -i -pe 's/a/b/' a_test.go":                     "write_test",
		"perl -i.bak -pe 's/a/b/' a_test.go":                 "write_test",
		"perl -ne 'print if /_test.go/' a_test.go":           "",
		"ruby -pi -e 'gsub(/a/, 1)' a_test.go":               "write_test",
		"awk '/a_test.go/ {print}' a.go":                     "",
		"gawk -i inplace '{print}' a_test.go":                "write_test",
		"awk -F: -v x=1 '{print}' a_test.go":                 "",
		"gawk --include inplace '{print}' a_test.go":         "write_test",
		"perdure hook allow 123456789012":                    "decide_for_person",
		"perdure uninstall codex":                            "decide_for_person",
		"perdure install codex --dry-run":                    "",
	} {
		if got := patterns(&agent.ToolCall{Kind: agent.ToolExecute, Command: line}); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	for line, want := range map[string]string{
		"sed -i s/a/b/ x y":       "/w/project/x /w/project/y",
		"sed -n -e 1p -f s.sed x": "/w/project/s.sed /w/project/x",
		"sed -n 's/a/b/w out' x":  "/w/project/out /w/project/x",
		"awk -f p.awk x":          "/w/project/p.awk /w/project/x",
		"perl -ne 'print' x":      "/w/project/x",
		"grep -e s/a/b/ x":        "/w/project/s/a/b /w/project/x",
	} {
		got := risk.Names(line, where())
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
