package reinforce

import "strings"

// HonestExit begins the line in an agent's last message with which it reports that the
// tests are wrong, or that the task cannot be done.
const HonestExit = "HONEST EXIT:"

// Honest returns the evidence of an honest exit; empty if there is none.
func Honest(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.Trim(line, " \t\r*_#>`")
		if len(line) >= len(HonestExit) && strings.EqualFold(line[:len(HonestExit)], HonestExit) {
			rest := strings.TrimSpace(line[len(HonestExit):] + "\n" + strings.Join(lines[i+1:], "\n"))
			return strings.Trim(rest, "*_` \n")
		}
	}
	return ""
}

// Asks reports whether an agent's last message is a question.
func Asks(text string) bool { return strings.HasSuffix(strings.TrimRight(text, " \t\r\n*_\"'`)"), "?") }
