package acp

import (
	"slices"
	"strings"
)

// Commands with which the text of a prompt can begin.
const (
	commandRun    = "run"
	commandLoop   = "loop"
	commandResume = "resume"
	commandStatus = "status"
	commandUntil  = "until"
	commandAgent  = "agent"
)

// command describes a command to the editor.
type command struct{ name, description, hint string }

func commands() []command {
	return []command{
		{commandRun, "Answer a question over the attached files, or over the folder", "question"},
		{commandLoop, "Repeat a coding agent on the folder until the check passes", "task"},
		{commandResume, "Continue the last run or loop of the session", ""},
		{commandStatus, "Show the state of the last run or loop", ""},
		{commandUntil, "Set the check of the next loops of the session", "command, such as go test ./..."},
		{commandAgent, "Set the agent of the next loops of the session", "claude, codex, opencode, gemini, acp:COMMAND …"},
	}
}

// splitCommand splits text into a known command, with which it begins, and its argument. Other text
// that begins with a slash is a prompt.
func splitCommand(text string) (name, rest string) {
	after, ok := strings.CutPrefix(text, "/")
	if !ok {
		return "", text
	}
	end := strings.IndexAny(after, " \t\r\n")
	if end < 0 {
		end = len(after)
	}
	name = after[:end]
	if !slices.ContainsFunc(commands(), func(c command) bool { return c.name == name }) {
		return "", text
	}
	return name, strings.TrimSpace(after[end:])
}

// offerCommands sends the commands of a session.
func (s *server) offerCommands(id string) {
	list := []object{}
	for _, c := range commands() {
		o := object{"name": c.name, "description": c.description}
		if c.hint != "" {
			o["input"] = object{"hint": c.hint}
		}
		list = append(list, o)
	}
	s.conn.Notify(methodUpdate, object{"sessionId": id, "update": object{
		"sessionUpdate": "available_commands_update", "availableCommands": list}})
}
