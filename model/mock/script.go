package mock

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// Script is a list of replies and how often each was used. It is safe for
// concurrent use.
type Script struct {
	name   string
	model  string
	window int
	limit  int

	mu       sync.Mutex // guards the fields below and the uses left of replies
	replies  []*rule
	requests int
}

// rule is one reply of a script, checked.
type rule struct {
	match *regexp.Regexp // nil matches everything
	spec  replySpec
	text  []piece
	left  int // uses left; -1 without end

	delay, retryAfter time.Duration
}

// part is literal text, or a placeholder by name.
type piece struct{ literal, placeholder string }

// reply is what is to be sent for one request.
type reply struct {
	text       string
	delay      time.Duration
	status     int
	retryAfter time.Duration
	message    string
	cut        bool // text is what is sent before it breaks off
	stopReason string
	usage      usageSpec
}

// Hash returns the hexadecimal sha-256 of a request's text: the system text, a
// blank line and the rendered prompt, as [model.RenderAll] gives it. It is what
// {{hash}} stands for and what a [Ledger] counts by. Temperature, seed and
// limits have no part in it.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// next picks the reply for a request and uses it once. Without one the error
// is a [*model.Error] of KindInvalid.
func (s *Script) next(request string) (*reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	if tokens := model.EstimateTokens(len(request)); s.limit > 0 && tokens > int64(s.limit) {
		return &reply{status: http.StatusBadRequest,
			message: fmt.Sprintf("the request has %d tokens, and the maximum context length is %d", tokens, s.limit)}, nil
	}
	for _, r := range s.replies {
		if r.left == 0 {
			continue
		}
		groups, ok := r.matches(request)
		if !ok {
			continue
		}
		if r.left > 0 {
			r.left--
		}
		return r.reply(request, groups, s.requests), nil
	}
	return nil, &model.Error{
		Kind: model.KindInvalid,
		Msg:  fmt.Sprintf("script %q has no reply left for request %d", s.name, s.requests),
		Hint: `end the script with a reply that has "repeat: -1"`,
	}
}

func (r *rule) matches(request string) (groups []string, ok bool) {
	if r.match == nil {
		return nil, true
	}
	groups = r.match.FindStringSubmatch(request)
	return groups, groups != nil
}

func (r *rule) reply(request string, groups []string, n int) *reply {
	text := r.expand(request, groups, n)
	if size := r.spec.Size; size > 0 {
		text = grow(text, size)
	}
	if r.spec.InvalidUTF8 {
		text += "\xff\xfe"
	}
	out := &reply{
		text: text, delay: r.delay, status: r.spec.Status,
		retryAfter: r.retryAfter, message: r.spec.Message,
		stopReason: r.spec.StopReason, usage: r.spec.usage(len(request), len(text)),
	}
	if r.spec.Cut != nil {
		out.cut = true
		out.text = text[:min(*r.spec.Cut, len(text))]
	}
	return out
}

func (r *rule) expand(request string, groups []string, n int) string {
	var b strings.Builder
	for _, p := range r.text {
		switch p.placeholder {
		case "":
			b.WriteString(p.literal)
		case "prompt":
			b.WriteString(request)
		case "hash":
			b.WriteString(Hash(request))
		case "short":
			b.WriteString(Hash(request)[:12])
		case "bytes":
			b.WriteString(strconv.Itoa(len(request)))
		case "n":
			b.WriteString(strconv.Itoa(n))
		default: // match, or the number of a group; checked when the script was read
			i, _ := strconv.Atoi(p.placeholder)
			if i < len(groups) {
				b.WriteString(groups[i])
			}
		}
	}
	return b.String()
}

// grow repeats text until it has size bytes, and cuts it there between two
// characters.
func grow(text string, size int) string {
	text = cmp.Or(text, "x")
	return clip.Prefix(strings.Repeat(text, size/len(text)+1), size)
}

func (s replySpec) usage(request, answer int) usageSpec {
	if s.Usage != nil && !s.Usage.Omit {
		return *s.Usage
	}
	return usageSpec{
		Input: model.EstimateTokens(request), Output: model.EstimateTokens(answer), Omit: s.Usage != nil,
	}
}

// parts splits the text as it is streamed, between characters.
func (r *reply) parts() []string {
	size := max(chunk, len(r.text)/maxChunks)
	var parts []string
	for rest := r.text; rest != ""; {
		n := min(size, len(rest))
		for n < len(rest) && !utf8.RuneStart(rest[n]) {
			n++
		}
		parts = append(parts, rest[:n])
		rest = rest[n:]
	}
	return parts
}
