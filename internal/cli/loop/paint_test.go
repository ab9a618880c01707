package loop

import "testing"

// Lines of a diff are told apart by their first character, the colour only helps;
// without colours they are as they are.
func TestPainted(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"+added": "\x1b[32m+added\x1b[m", "-gone": "\x1b[31m-gone\x1b[m", "@@ -1 +1 @@": "\x1b[36m@@ -1 +1 @@\x1b[m",
		"--- a/x": "\x1b[1m--- a/x\x1b[m", "+++ b/x": "\x1b[1m+++ b/x\x1b[m", " stays": " stays", "": "",
		"rename from x": "rename from x",
	} {
		if got := painted(line, true); got != want {
			t.Errorf("%q is painted %q, want %q", line, got, want)
		}
		if got := painted(line, false); got != line {
			t.Errorf("%q without colours is %q", line, got)
		}
	}
}
