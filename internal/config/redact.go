package config

import (
	"net/url"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// hidden is written instead of a secret part of a URL.
const hidden = "xxxxx"

// urls matches the URLs in a text.
var urls = lazyregexp.New("[A-Za-z][A-Za-z0-9+.-]*://[^\\s\"'<>`]+")

// RedactURLs hides the secrets of the URLs in a text: user names and passwords, parameters
// with secret names, and long random parts of the path, such as those of webhooks.
func RedactURLs(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	return urls().ReplaceAllStringFunc(text, func(found string) string {
		bare := strings.TrimRight(found, ".,;:!?)]}")
		return withoutPassword(bare) + found[len(bare):]
	})
}

// withoutPassword hides the secrets of a URL. It hides the whole text if it is not a URL.
func withoutPassword(text string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil {
		return hidden
	}
	before := u.String()
	if _, ok := u.User.Password(); ok {
		u.User = url.UserPassword(shownUser(u), hidden)
	} else if u.User != nil {
		u.User = url.User(shownUser(u))
	}
	query := u.Query()
	for name := range query {
		if secretParameter(name) {
			query.Set(name, hidden)
			u.RawQuery = query.Encode()
		}
	}
	if strings.HasPrefix(u.Scheme, "http") {
		parts := strings.Split(u.Path, "/")
		for i, part := range parts {
			if random(part) {
				parts[i] = hidden
			}
		}
		if path := strings.Join(parts, "/"); path != u.Path {
			u.Path, u.RawPath = path, ""
		}
	}
	if after := u.String(); after != before {
		return after
	}
	return text
}

// shownUser returns the name of the user. In URLs of the web it is often a token.
func shownUser(u *url.URL) string {
	if strings.HasPrefix(u.Scheme, "http") {
		return hidden
	}
	return u.User.Username()
}

func secretParameter(name string) bool {
	lower := strings.ToLower(name)
	switch lower {
	case "key", "sig", "auth", "code", "jwt", "pwd", "sas":
		return true
	}
	for _, word := range []string{"password", "passwd", "token", "secret", "signature", "credential", "apikey"} {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return isSecret(name)
}

// minRandom is the length of the shortest part of a path that is taken for a secret.
const minRandom = 20

// random reports whether a part of a path looks like a token: long, with digits and letters.
func random(part string) bool {
	const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return len(part) >= minRandom && strings.ContainsAny(part, digits) && strings.ContainsAny(part, letters) &&
		strings.Trim(part, digits+letters+"-_") == ""
}
