package model

import (
	"regexp"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// mask replaces a secret.
const mask = "[redacted]"

// minSecret is the shortest text taken for a secret: masking every "x" of a
// message because a local server's key is "x" would only make it unreadable.
const minSecret = 4

// The form of secrets that are not known by value. The parts in the
// first group are kept.
var (
	reKeyWord = lazyregexp.New(`()\b(?:sk|pk|rk|xai|gsk|hf|ghp|gho|glpat|key)[-_][A-Za-z0-9][A-Za-z0-9_\-]{14,}`)
	reBearer  = lazyregexp.New(`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}`)
	reAssign  = lazyregexp.New(`(?i)((?:api[-_]?key|access[-_]?token|auth[-_]?token|secret|password|[?&](?:key|token|` +
		`sig|auth|pwd|passwd|[a-z-]*signature|[a-z-]*token|[a-z-]*credential))["']?\s*[:=]\s*["']?)[^\s"'&,;]{4,}`)
	reUserURL = lazyregexp.New(`(://)[^/\s"@]+@`)
)

// Redact masks the given secrets in s, and whatever looks like a key, a bearer
// token or a password. Secrets shorter than four bytes are left.
func Redact(s string, secrets ...string) string {
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			s = strings.ReplaceAll(s, secret, mask)
		}
	}
	s = reUserURL().ReplaceAllString(s, "${1}"+mask+"@")
	for _, re := range []*regexp.Regexp{reBearer(), reAssign(), reKeyWord()} {
		s = re.ReplaceAllString(s, "${1}"+mask)
	}
	return s
}

// RedactError returns err with a text that [Redact] went over. errors.Is and
// errors.As see through it. It returns nil for nil.
func RedactError(err error, secrets ...string) error {
	if err == nil {
		return nil
	}
	return &redacted{text: Redact(err.Error(), secrets...), err: err}
}

type redacted struct {
	text string
	err  error
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }
