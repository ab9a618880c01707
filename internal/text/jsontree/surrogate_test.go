package jsontree_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/text/jsontree"
)

func TestLoneSurrogate(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{`"a"`: false, `"\ud83d\ude00"`: false, `"\\ud83d"`: false, `"\ufffd"`: false,
		`"x\uD83D\uDE00y\n"`: false, `"\ud83d"`: true, `"a\ud83db"`: true, `"\ude00"`: true, `"\ud83d\ud83d\ude00"`: true,
		`"\ud83d\\ude00"`: true} {
		v, err := jsontree.Parse([]byte(raw), jsontree.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := jsontree.LoneSurrogate(v.Raw()); got != want {
			t.Errorf("%s: %v, want %v", raw, got, want)
		}
		if replaced := strings.Contains(v.Text(), "\uFFFD"); want && !replaced {
			t.Errorf("%s is read as %q", raw, v.Text())
		}
	}
}
