package command

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// reProvider matches the user's choice of a provider in Codex's settings.
var reProvider = lazyregexp.New(`(?m)^\s*model_provider\s*=`)

// EndpointOptions returns options for the agent of a preset, to be put before its other
// arguments args, with which it uses the address of its provider in env. They are empty for
// agents that read these variables themselves, and if the user chose a provider.
func EndpointOptions(preset string, env, args []string) []string {
	v, err := vendorOf(preset)
	if err != nil || v.endpoint == nil {
		return nil
	}
	return v.endpoint(env, args)
}

// codexEndpoint returns the options with which Codex sends its requests to OPENAI_BASE_URL of a
// turn's environment, which it does not read itself. They define a provider with the user's
// login, because Codex asks its own provider over WebSockets, which meters do not read. A
// provider that the user chose is left alone.
func codexEndpoint(env, args []string) []string {
	address := valueOf(env, "OPENAI_BASE_URL")
	chosen := slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "model_provider") })
	if address == "" || chosen {
		return nil
	}
	all := slices.Concat(os.Environ(), env)
	home := cmp.Or(valueOf(all, "CODEX_HOME"), filepath.Join(valueOf(all, "HOME"), ".codex"))
	if settings, err := os.ReadFile(filepath.Join(home, "config.toml")); err == nil && reProvider().Match(settings) {
		return nil
	}
	var options []string
	for _, set := range [][2]string{{"model_provider", "perdure"}, {"model_providers.perdure.name", "OpenAI"},
		{"model_providers.perdure.base_url", address}, {"model_providers.perdure.wire_api", "responses"}} {
		options = append(options, "-c", set[0]+"="+strconv.Quote(set[1]))
	}
	return append(options, "-c", "model_providers.perdure.requires_openai_auth=true")
}
