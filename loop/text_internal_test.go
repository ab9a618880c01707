package loop

import (
	"testing"

	"github.com/perdure/perdure/internal/text/clip"
)

func TestNormalised(t *testing.T) {
	t.Parallel()
	a := normalised("/tmp/x/a.go:12: timeout after 1.5s at 0xc000123 (id 42)")
	b := normalised("/home/y/b.go:7: timeout after 30ms at 0xdeadbeef (id 4711)")
	if a != b {
		t.Errorf("%q and %q differ", a, b)
	}
	if normalised("no such file") == normalised("no such host") {
		t.Error("other errors are alike")
	}
}

func FuzzClip(f *testing.F) {
	f.Add("héllo", 4)
	f.Fuzz(func(t *testing.T, text string, most int) {
		if most < 3 || most > 1000 {
			return
		}
		if got := clip.Bytes(text, most); len(got) > most {
			t.Errorf("%d bytes, at most %d", len(got), most)
		}
	})
}
