// Package opencode makes the permissions of opencode, which its headless mode and its mode for
// the Agent Client Protocol share.
package opencode

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
)

// Permission returns the variables that set what opencode may do; none if its own settings
// apply. Denied calls are reported to the model; those that would have to be asked for end the
// turn. opencode checks each command of a line by the last pattern that matches, and not its
// redirections.
func Permission(p agent.Permission, rules []agent.CommandRule) []string {
	switch p {
	case agent.PermissionRead:
		return []string{`OPENCODE_PERMISSION={"edit":"deny","bash":"deny","external_directory":"deny"}`}
	case agent.PermissionEdits:
		return []string{`OPENCODE_PERMISSION={"edit":"allow","bash":` + patterns(rules) + `,"external_directory":"deny"}`}
	case agent.PermissionAll, agent.PermissionOwn:
	}
	return nil
}

// patterns returns the permissions of commands. In a pattern, * and ? stand for anything.
func patterns(rules []agent.CommandRule) string {
	var list []string
	allow := func(pattern string) {
		text, _ := json.Marshal(pattern) // of a string
		if entry := string(text) + `:"allow"`; !slices.Contains(list, entry) {
			list = append(list, entry)
		}
	}
	for _, r := range rules {
		if r.Reads || !r.More && strings.ContainsAny(r.Line, "*?") {
			continue
		}
		if allow(r.Line); r.More {
			allow(r.Line + " *")
		}
	}
	if len(list) == 0 {
		return `"deny"` // the tool is not offered at all
	}
	return `{"*":"deny",` + strings.Join(list, ",") + `}`
}

// Denied reports whether the error of a call says that its permissions denied it.
func Denied(text string) bool {
	return strings.HasPrefix(text, "The user has specified a rule which prevents you") ||
		strings.HasPrefix(text, "The user rejected permission")
}
