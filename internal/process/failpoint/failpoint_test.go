package failpoint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/process/failpoint"
)

// TestMain also runs this binary as the process that passes failpoints.
func TestMain(m *testing.M) {
	switch os.Getenv("PERDURE_TEST_CHILD") {
	case "":
		m.Run() // returning exits with its code
		return
	case "on":
		failpoint.Enable()
	}
	for range 3 {
		failpoint.Hit("test.a")
		failpoint.Hit("test.b")
	}
}

func runChild(t *testing.T, failpoints, spec string) (killed bool, passed string) {
	t.Helper()
	list := filepath.Join(t.TempDir(), "list")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "PERDURE_TEST_CHILD="+failpoints, "PERDURE_FAILPOINT="+spec,
		"PERDURE_FAILPOINT_LIST="+list)
	err := cmd.Run()
	data, readErr := os.ReadFile(list)
	if readErr != nil && !os.IsNotExist(readErr) {
		t.Fatal(readErr)
	}
	return err != nil && strings.Contains(err.Error(), "killed"), strings.Join(strings.Fields(string(data)), " ")
}

func TestHit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		spec   string
		killed bool
		passed string
	}{
		{"", false, "test.a test.b test.a test.b test.a test.b"},
		{"test.other", false, "test.a test.b test.a test.b test.a test.b"},
		{"test.b", true, "test.a test.b"},
		{"test.a:3", true, "test.a test.b test.a test.b test.a"},
		{"test.a:4", false, "test.a test.b test.a test.b test.a test.b"},
	}
	for _, tt := range tests {
		t.Run("spec "+tt.spec, func(t *testing.T) {
			t.Parallel()
			if killed, passed := runChild(t, "on", tt.spec); killed != tt.killed || passed != tt.passed {
				t.Errorf("killed %v after %q, want %v after %q", killed, passed, tt.killed, tt.passed)
			}
			if killed, passed := runChild(t, "off", tt.spec); killed || passed != "" {
				t.Errorf("without failpoints: killed %v after %q", killed, passed)
			}
		})
	}
}
