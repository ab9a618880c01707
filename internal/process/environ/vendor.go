package environ

import "strings"

// Vendor returns the patterns of the variables that a known agent gets in addition to those
// of [Base]: its own settings and the key of its vendor. For an agent that works with models
// of many vendors, model is its name for a model, "vendor/name", and selects the key. The
// result is nil for an agent that is not known.
//
// Variables that several programs use for the same secret (AWS_*, GITHUB_TOKEN) are in no
// list: the user names them in the setting loop.env.
func Vendor(agent, model string) []string {
	switch agent {
	case "claude":
		return []string{"ANTHROPIC_*", "CLAUDE_*", "API_TIMEOUT_MS", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_OUTPUT_LENGTH",
			"BASH_MAX_TIMEOUT_MS", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_PROMPT_CACHING",
			"DISABLE_TELEMETRY", "ENABLE_TOOL_SEARCH", "IS_SANDBOX", "MAX_MCP_OUTPUT_TOKENS", "MAX_THINKING_TOKENS",
			"MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "USE_BUILTIN_RIPGREP"}
	case "codex":
		return []string{"OPENAI_*", "CODEX_*", "INITIAL_AGENT_MODE"} // the last one is of its ACP adapter
	case "copilot":
		return []string{"COPILOT_*"}
	case "cursor":
		return []string{"CURSOR_*"}
	case "gemini":
		return []string{"GEMINI_*", "GOOGLE_*"}
	case "goose":
		return append([]string{"GOOSE_*"}, provider(model)...)
	case "kimi":
		return []string{"KIMI_*", "MOONSHOT_*"}
	case "opencode":
		return append([]string{"OPENCODE_*"}, provider(model)...)
	case "qwen":
		return []string{"QWEN_*", "DASHSCOPE_*"}
	}
	return nil
}

// provider returns the variables of the vendor in the name of a model.
func provider(model string) []string {
	name, _, named := strings.Cut(model, "/")
	switch {
	case !named || name == "" || strings.Contains(name, "*"):
		return nil
	case name == "anthropic":
		return []string{"ANTHROPIC_*"}
	case name == "openai":
		return []string{"OPENAI_*"}
	case name == "google":
		return []string{"GEMINI_*", "GOOGLE_*"}
	}
	return []string{strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_API_KEY"}
}
