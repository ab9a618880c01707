package command

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestCodexEndpoint: the address in a turn's environment becomes a provider of Codex, unless
// the user chose one.
func TestCodexEndpoint(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := []string{"CODEX_HOME=" + home, "OPENAI_BASE_URL=http://127.0.0.1:1/t/openai/v1"}
	got := codexEndpoint(env, nil)
	for _, want := range []string{`model_provider="perdure"`, "model_providers.perdure.requires_openai_auth=true",
		`model_providers.perdure.base_url="http://127.0.0.1:1/t/openai/v1"`} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	if got := codexEndpoint(env[:1], nil); got != nil {
		t.Errorf("without an address: %q", got)
	}
	if got := codexEndpoint(env, []string{"-c", `model_provider="mine"`}); got != nil {
		t.Errorf("with an argument of the user: %q", got)
	}
	settings := "model = \"m\"\nmodel_provider = \"local\"\n"
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := codexEndpoint(env, nil); got != nil {
		t.Errorf("with a provider in the settings: %q", got)
	}
}
