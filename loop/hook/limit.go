package hook

import "fmt"

// Limits of messages and replies, in bytes unless they say otherwise. What
// exceeds one is a [*LimitError].
const (
	// MaxMessageBytes is the longest message, as JSON, that handlers outside this
	// process are sent.
	MaxMessageBytes = 4 << 20
	// MaxReplyBytes is the longest reply, as JSON, of handlers outside this
	// process.
	MaxReplyBytes = 1 << 20
	// MaxContentBytes is the longest content of a reply.
	MaxContentBytes = 64 << 10
	// MaxInjectBytes is the longest text for the prompt in one reply.
	MaxInjectBytes = 16 << 10
	// MaxRecommendations is how many recommendations a reply may contain, and
	// MaxRecommendationBytes how long each may be.
	MaxRecommendations     = 100
	MaxRecommendationBytes = 4 << 10
	// MaxDetailsBytes is the longest details of a reply, as JSON.
	MaxDetailsBytes = 256 << 10
	// MaxDepth is how deep objects and arrays may be nested.
	MaxDepth = 64
	// MaxNameBytes is the longest name of a hook, handler or sender, and
	// MaxLoopIDBytes the longest loop_id.
	MaxNameBytes   = 100
	MaxLoopIDBytes = 200
)

// LimitError says that something is larger than it may be.
type LimitError struct {
	// What is too large, for example "metadata.inject".
	What string
	// Limit is how large it may be, and Got how large it is; 0 when that is not
	// known, because reading stopped.
	Limit, Got int
}

// Error names what is too large and the limit.
func (e *LimitError) Error() string {
	if e.Got == 0 {
		return fmt.Sprintf("%s: exceeds the limit of %d", e.What, e.Limit)
	}
	return fmt.Sprintf("%s: is %d, the limit is %d", e.What, e.Got, e.Limit)
}

// within returns a *LimitError when got exceeds limit.
func within(what string, limit, got int) error {
	if got > limit {
		return &LimitError{What: what, Limit: limit, Got: got}
	}
	return nil
}
