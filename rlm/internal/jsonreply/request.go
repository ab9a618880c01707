package jsonreply

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
)

// Repair shows a model its reply and what is wrong with it. The reply is
// cut when there is no room for all of it.
func Repair(reply string, problems []string, most int) string {
	var faults strings.Builder
	for i, p := range problems {
		if faults.Len()+len(p) > most/2 && i > 0 {
			fmt.Fprintf(&faults, "- and %d more\n", len(problems)-i)
			break
		}
		fmt.Fprintf(&faults, "- %s\n", p)
	}
	shown := clip.Bytes(strings.TrimSpace(reply), max(most-faults.Len(), most/4))
	return "\n\n=== your last reply ===\n" + shown + "\n=== end of your last reply ===\n\n" +
		"It cannot be used:\n" + faults.String() + "\nReply again, corrected, with the whole JSON value and nothing else."
}

// Instruction asks for a result of the shape.
func (s *Shape) Instruction() string {
	return "Reply with one JSON value that is valid against this JSON Schema, and with nothing else:\n" + s.Text
}

// Hint asks a model that reads one part for the values of that part.
func (s *Shape) Hint() string {
	return "The answers of all parts will be combined into JSON that is valid against this JSON Schema; " +
		"reply in plain text with the values for it that this part contains:\n" + s.Text
}
