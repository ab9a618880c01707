package endpoint_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent/internal/endpoint"
)

// TestOf: the addresses of agents are those that their settings and variables name, and what cannot
// be counted has a reason.
func TestOf(t *testing.T) {
	t.Parallel()
	const codex = "model_provider = \"mine\"\n[model_providers.mine]\nbase_url = \"http://gateway/v1\"\n"
	tests := map[string]struct {
		agent string
		files map[string]string // H/ is the user's home folder, W/ the workspace
		env   []string
		args  []string
		model string
		want  map[string]string
		fails string
	}{
		"claude": {agent: "claude", want: map[string]string{"anthropic": "https://api.anthropic.com"}},
		"claude by variable": {agent: "claude", env: []string{"ANTHROPIC_BASE_URL=http://a"},
			want: map[string]string{"anthropic": "http://a"}},
		"claude by settings": {agent: "claude", env: []string{"ANTHROPIC_BASE_URL=http://a"},
			files: map[string]string{"H/.claude/settings.json": `{"env":{"ANTHROPIC_BASE_URL":"http://b"}}`,
				"W/.claude/settings.local.json": `{"env":{"ANTHROPIC_BASE_URL":"http://c"}}`},
			want: map[string]string{"anthropic": "http://c"}},
		"claude with Bedrock": {agent: "claude", env: []string{"CLAUDE_CODE_USE_BEDROCK=1"}, fails: "Amazon Bedrock"},
		"claude with Vertex in settings": {agent: "claude",
			files: map[string]string{"W/.claude/settings.json": `{"env":{"CLAUDE_CODE_USE_VERTEX":"1"}}`}, fails: "Vertex"},
		"claude with damaged settings": {agent: "claude", files: map[string]string{"H/.claude/settings.json": `{"env":`},
			fails: "cannot be read"},
		"codex": {agent: "codex", want: map[string]string{"openai": "https://api.openai.com/v1"}},
		"codex with a login": {agent: "codex",
			files: map[string]string{"H/.codex/auth.json": `{"auth_mode":"chatgpt","tokens":{}}`},
			want:  map[string]string{"openai": "https://chatgpt.com/backend-api/codex"}},
		"codex with a provider": {agent: "codex", files: map[string]string{"H/.codex/config.toml": codex},
			want: map[string]string{"codex-mine": "http://gateway/v1"}},
		"codex with a provider of the adapter": {agent: "codex", env: []string{
			`CODEX_CONFIG={"model_provider":"x","model_providers":{"x":{"base_url":"http://x"}}}`},
			want: map[string]string{"codex-x": "http://x"}},
		"codex with a provider without address": {agent: "codex",
			files: map[string]string{"H/.codex/config.toml": "model_provider = \"ollama\"\n"}, fails: "no base_url"},
		"codex with an option": {agent: "codex", args: []string{"-c", `model_provider="x"`}, fails: "option"},
		"gemini": {agent: "gemini", want: map[string]string{"gemini": "https://generativelanguage.googleapis.com",
			"code-assist": "https://cloudcode-pa.googleapis.com"}},
		"gemini by a file of variables": {agent: "gemini", files: map[string]string{
			"W/.env": "# mine\nexport GOOGLE_GEMINI_BASE_URL=\"http://g\"\n"},
			want: map[string]string{"gemini": "http://g", "code-assist": "https://cloudcode-pa.googleapis.com"}},
		"gemini with Vertex": {agent: "gemini", files: map[string]string{
			"H/.gemini/settings.json": `{"security":{"auth":{"selectedType":"vertex-ai"}}}`}, fails: "Vertex"},
		"opencode by a model": {agent: "opencode", model: "anthropic/claude", want: map[string]string{
			"anthropic": "https://api.anthropic.com/v1"}},
		"opencode by settings": {agent: "opencode", env: []string{"OPENAI_API_KEY=x", "BASE=http://l",
			`OPENCODE_CONFIG_CONTENT={"model":"local/m","provider":{"local":{"options":{"baseURL":"{env:BASE}/v1"}}}}`},
			files: map[string]string{"W/opencode.json": `{"provider":{"other":{"options":{"baseURL":"http://o"}}}} // mine`},
			want:  map[string]string{"openai": "https://api.openai.com/v1", "local": "http://l/v1", "other": "http://o"}},
		"opencode with a provider without address": {agent: "opencode", model: "zen/m", fails: `provider "zen"`},
		"program": {agent: "", fails: "not known"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			home, dir := filepath.Join(root, "home"), filepath.Join(root, "work")
			for file, text := range tt.files {
				file = strings.NewReplacer("H/", home+"/", "W/", dir+"/").Replace(file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := endpoint.Of(tt.agent, endpoint.Place{Dir: dir, Env: append([]string{"HOME=" + home}, tt.env...),
				Args: tt.args, Model: tt.model})
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

// TestOtherAddresses: agents are given other addresses in addition to the user's settings.
func TestOtherAddresses(t *testing.T) {
	t.Parallel()
	to := map[string]string{"codex-mine": "http://m", "local": "http://l"}
	options := endpoint.CodexOptions(map[string]string{"codex-mine": "http://m"})
	if diff := cmp.Diff([]string{"-c", `model_providers.mine.base_url="http://m"`}, options); diff != "" {
		t.Error(diff)
	}
	own := endpoint.CodexOptions(map[string]string{"openai": "http://m"})
	if !slices.Contains(own, `model_provider="perdure"`) || !slices.Contains(own,
		"model_providers.perdure.requires_openai_auth=true") {
		t.Errorf("%q", own)
	}
	config, err := endpoint.CodexConfig(`{"a":1}`, map[string]string{"codex-mine": "http://m"}, map[string]any{"hooks": 2})
	if want := `{"a":1,"hooks":2,"model_providers":{"mine":{"base_url":"http://m"}}}`; config != want || err != nil {
		t.Errorf("%s, %v", config, err)
	}
	delete(to, "codex-mine")
	config, err = endpoint.OpencodeConfig(`{"plugin":["x"],"provider":{"local":{"options":{"apiKey":"k"}}}}`, "/p.js", to)
	if want := `{"plugin":["x","file:///p.js"],"provider":{"local":{"options":{"apiKey":"k","baseURL":"http://l"}}}}`; config !=
		want || err != nil {
		t.Errorf("%s, %v", config, err)
	}
	if got := endpoint.ClaudeVariables(map[string]string{"anthropic": "http://m"}); !maps.Equal(got,
		map[string]string{"ANTHROPIC_BASE_URL": "http://m"}) {
		t.Errorf("%v", got)
	}
	if got := endpoint.GeminiVariables(map[string]string{"gemini": "http://m"}); !slices.Equal(got,
		[]string{"GOOGLE_GEMINI_BASE_URL=http://m"}) {
		t.Errorf("%v", got)
	}
}

// TestHooksOff: settings that switch hooks off are found at each level.
func TestHooksOff(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		agent, file, text, arg, want string
	}{
		{"claude", "home/.claude/settings.json", `{"disableAllHooks":true}`, "", "disableAllHooks"},
		{"claude", "work/.claude/settings.json", `{"disableAllHooks":true}`, "", "disableAllHooks"},
		{"claude", "work/.claude/settings.local.json", `{"disableAllHooks":true}`, "", "disableAllHooks"},
		{"claude", "home/.claude/settings.json", `{"disableAllHooks":false}`, "", ""},
		{"claude", "none", "", "--bare", "--bare"},
		{"codex", "home/.codex/config.toml", "[features]\nhooks = false\n", "", "features.hooks"},
		{"codex", "home/.codex/config.toml", "[features]\nhooks = true\n", "", ""},
		{"codex", "none", "", "features.hooks=false", "features.hooks"},
		{"gemini", "home/.gemini/settings.json", `{"hooksConfig":{"enabled":false}}`, "", "hooksConfig.enabled"},
		{"gemini", "work/.gemini/settings.json", `{"hooksConfig":{"enabled":false}}`, "", "hooksConfig.enabled"},
		{"gemini", "home/.gemini/settings.json", `{"hooksConfig":{"enabled":true}}`, "", "install gemini"},
		{"gemini", "work/.gemini/settings.json", `{"x":"perdure: the hook refused this call, or failed"}`, "", ""},
		{"opencode", "none", "", "--pure", "--pure"},
		{"opencode", "none", "", "", ""},
	} {
		root := t.TempDir()
		file := filepath.Join(root, tt.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := endpoint.HooksOff(tt.agent, endpoint.Place{Dir: filepath.Join(root, "work"),
			Env: []string{"HOME=" + filepath.Join(root, "home")}, Args: []string{tt.arg}})
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s %s: %q", tt.agent, tt.file, tt.arg, got)
		}
	}
}
