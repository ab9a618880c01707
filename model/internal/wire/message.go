package wire

import "github.com/perdure/perdure/model"

// Role returns the role of a message, which both protocols name the same.
func Role(m model.Message) string {
	if m.Reply {
		return "assistant"
	}
	return "user"
}

// Bytes returns the length of the text of a request, whose prompt is rendered as user.
func Bytes(req *model.Request, user string) int {
	n := len(req.System) + len(user)
	for _, m := range req.Messages {
		n += len(m.Text)
	}
	return n
}
