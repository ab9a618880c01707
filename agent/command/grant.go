package command

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/internal/opencode"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// grant is how an agent is started so that it may run commands without asking.
type grant struct {
	args, env []string
	// policy is the content of a file whose path is added to args; empty for no file.
	policy string
}

// rePlain matches a line that a rule with further arguments may have.
var rePlain = lazyregexp.New(`^[A-Za-z0-9._/:@%+=-]+( [A-Za-z0-9._/:@%+=-]+)*$`)

// valid reports whether an agent can be given a rule: a line without control characters, and
// for one with further arguments, plain words.
func valid(r agent.CommandRule) bool {
	control := strings.ContainsFunc(r.Line, func(c rune) bool { return c < ' ' || c == 0x7f })
	return r.Line != "" && strings.TrimSpace(r.Line) == r.Line && !control && (!r.More || rePlain().MatchString(r.Line))
}

// granted returns the rules of a turn that apply.
func (a *Agent) granted(turn *agent.Turn) []agent.CommandRule {
	if a.cfg.Permission != agent.PermissionEdits {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(turn.Commands), func(r agent.CommandRule) bool { return !valid(r) })
}

// grantClaude allows commands by rules of Claude Code, which checks each command of a line.
// In a rule, * stands for anything and parentheses end it: lines with these have no rule.
func grantClaude(rules []agent.CommandRule) grant {
	var g grant
	for _, r := range rules {
		switch {
		case r.More:
			g.args = append(g.args, "--allowedTools", "Bash("+r.Line+":*)")
		case !strings.ContainsAny(r.Line, `*()\,`) && !strings.HasSuffix(r.Line, ":"):
			g.args = append(g.args, "--allowedTools", "Bash("+r.Line+")")
		}
	}
	return g
}

// grantOpencode allows commands by patterns of opencode.
func grantOpencode(rules []agent.CommandRule) grant {
	return grant{env: opencode.Permission(agent.PermissionEdits, rules)}
}

// geminiNoFiles is the rule of a policy that denies redirections to files: Gemini CLI does not
// check where they write. Its patterns cannot follow a shell's quotes, so that the rule also
// denies some commands that only print a >.
const geminiNoFiles = `[[rule]]
toolName = "run_shell_command"
argsPattern = '"command":".*>(?!&[0-9][^0-9A-Za-z_./-]|\s?/dev/null[^0-9A-Za-z_./-])'
decision = "deny"
priority = 200
denyMessage = "Commands may not contain > here, except for 2>&1 and >/dev/null. Write files with your own tool."

`

// grantGemini allows commands by a policy of Gemini CLI, which checks each command of a
// line. The pattern of a rule is matched with the arguments of the tool as JSON.
func grantGemini(rules []agent.CommandRule) grant {
	var b strings.Builder
	b.WriteString(geminiNoFiles)
	for _, r := range rules {
		text, _ := json.Marshal(r.Line) // of a string
		pattern := regexp.QuoteMeta(`"command":` + strings.TrimSuffix(string(text), `"`))
		if r.More {
			pattern += `[ "]`
		} else {
			pattern += `"`
		}
		quoted, _ := json.Marshal(pattern) // a string of JSON is one of TOML
		fmt.Fprintf(&b, "[[rule]]\ntoolName = \"run_shell_command\"\nargsPattern = %s\ndecision = \"allow\"\n"+
			"priority = 100\n\n", quoted)
	}
	return grant{policy: b.String()}
}
