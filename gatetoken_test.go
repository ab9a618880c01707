package perdure_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure"
)

// A token has 80 bits, no letters that look like others, and is compared without regard to
// how it is written.
func TestGateToken(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^([0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$`)
	seen := make(map[string]bool)
	for range 1000 {
		token := perdure.NewGateToken()
		if !form.MatchString(token) || seen[token] {
			t.Fatalf("token %q, seen before: %v", token, seen[token])
		}
		seen[token] = true
	}
	var g perdure.Gate
	if g.HasToken("") {
		t.Error("a gate without a token takes the empty one")
	}
	g.SetToken("k3m9-7xqp-0d41-hz5t")
	for token, want := range map[string]bool{"k3m9-7xqp-0d41-hz5t": true, "K3M97XQP0D41HZ5T": true,
		" k3m9 7xqp od4l hz5t\n": true, "": false, "k3m9-7xqp-0d41-hz5": false, "k3m9-7xqp-0d41-hz5v": false,
		g.TokenHash: false} {
		if g.HasToken(token) != want {
			t.Errorf("%q: %v", token, !want)
		}
	}
	if strings.Contains(g.TokenHash, "k3m9") {
		t.Error("the hash contains the token")
	}
}
