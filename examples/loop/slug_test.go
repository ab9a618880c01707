package slug

import "testing"

func TestSpaces(t *testing.T) {
	if got := Slug("a b"); got != "a-b" {
		t.Errorf("got %q", got)
	}
}

func TestLowerCase(t *testing.T) {
	if got := Slug("A B"); got != "a-b" {
		t.Errorf("got %q", got)
	}
}

func TestPunctuation(t *testing.T) {
	if got := Slug("what's new?"); got != "whats-new" {
		t.Errorf("got %q", got)
	}
}
