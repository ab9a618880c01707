package model

import "strings"

// IsCut reports whether the text ends where the limit for answers, or the model's window, was reached:
// it is not the whole answer.
func (r *Response) IsCut() bool {
	switch strings.ToLower(r.StopReason) {
	case "length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded":
		return true
	}
	return false
}
