package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestDocsAttempts: the attempts are numbered without gaps, there are at least 60, and each names
// a test or a script that exists, or says why nothing protects from it.
func TestDocsAttempts(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/attempts.md")
	if err != nil {
		t.Fatal(err)
	}
	exist := testNames(t)
	row := regexp.MustCompile(`(?m)^\| (\d+) \| (.+?) \| (.+?) \|(.*)\|$`)
	result := regexp.MustCompile("^(refused|ignored|hidden|ended|reverted|found)\\b|^not protected: .+")
	named := regexp.MustCompile("`([A-Za-z_]+(?:\\.txtar)?)`")
	rows := row.FindAllStringSubmatch(string(text), -1)
	for i, r := range rows {
		if r[1] != strconv.Itoa(i+1) {
			t.Errorf("attempt %s has the place %d", r[1], i+1)
		}
		if !result.MatchString(r[3]) {
			t.Errorf("attempt %s has the result %q", r[1], r[3])
		}
		proofs := named.FindAllStringSubmatch(r[4], -1)
		if len(proofs) == 0 && !strings.HasPrefix(r[3], "not protected: ") {
			t.Errorf("attempt %s has no test", r[1])
		}
		for _, p := range proofs {
			if !exist[p[1]] && !isScript(p[1]) {
				t.Errorf("attempt %s: there is no %s", r[1], p[1])
			}
		}
	}
	lines := strings.Count(string(text), "\n| ") - strings.Count(string(text), "\n| |")
	if lines != len(rows) || lines < 60 {
		t.Errorf("%d of %d rows can be read, at least 60 are needed", len(rows), lines)
	}
}

// isScript reports whether there is a script of this name.
func isScript(name string) bool {
	if !strings.HasSuffix(name, ".txtar") {
		return false
	}
	for _, dir := range []string{"testdata/script", "testdata/script/both"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
