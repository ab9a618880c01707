package model_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]model.Kind{
		400: model.KindInvalid, 401: model.KindAuth, 403: model.KindAuth, 404: model.KindNotFound,
		408: model.KindUnavailable, 409: model.KindUnavailable, 413: model.KindTooLong, 422: model.KindInvalid,
		429: model.KindRateLimit, 500: model.KindUnavailable, 503: model.KindUnavailable, 599: model.KindUnavailable,
	} {
		if got := model.KindOfStatus(status); got != want {
			t.Errorf("status %d is %q, want %q", status, got, want)
		}
	}
	again := map[model.Kind]bool{
		model.KindRateLimit: true, model.KindUnavailable: true, model.KindCut: true, model.KindTimeout: true,
		model.KindEmpty:   true,
		model.KindInvalid: false, model.KindAuth: false, model.KindNotFound: false, model.KindTooLarge: false,
		model.KindTooLong: false,
		model.KindFailed:  false, model.KindCanceled: false, "unheard of": false,
	}
	for kind, want := range again {
		if got := (&model.Error{Kind: kind}).Retryable(); got != want {
			t.Errorf("%q may be tried again: %t, want %t", kind, got, want)
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	cause := errors.New("dial\nfailed for sk-abcdefghijklmnop0123456789")
	e := &model.Error{Kind: model.KindUnavailable, Msg: "reach x", Err: cause, Tries: 3}
	if got, want := e.Error(), "unavailable: reach x: dial failed for [redacted] (3 tries)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(e, cause) {
		t.Error("the cause is lost")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("why"))
	if e := model.Canceled(ctx); !errors.Is(e, context.Canceled) || !strings.Contains(e.Error(), "why") {
		t.Errorf("error = %v", e)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{"nothing here", "nothing here"},
		{"key my-own-key!", "key [redacted]"},
		{"sk-proj-abcdefghijklmnopqrst.", "[redacted]."},
		{"Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"},
		{`{"api_key": "abcdefgh"}`, `{"api_key": "[redacted]"}`},
		{"https://u:p@host/x?key=abcdef&b=1", "https://[redacted]@host/x?key=[redacted]&b=1"},
		{"a task-force of disk-drives and monkey-business", "a task-force of disk-drives and monkey-business"},
		{"the key is wrong", "the key is wrong"},
		{"ab", "ab"},
	}
	for _, tt := range tests {
		if got := model.Redact(tt.in, "my-own-key!", "", "ab"); got != tt.want {
			t.Errorf("Redact(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if model.RedactError(nil) != nil {
		t.Error("an error came out of none")
	}
	err := model.RedactError(fmt.Errorf("with my-own-key!: %w", context.Canceled), "my-own-key!")
	if err.Error() != "with [redacted]: context canceled" || !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "plain ä 日本": "plain ä 日本", "a\xff\xfeb": "a\uFFFDb", "a\x00b": "a\uFFFDb", "\xe6\x97": "\uFFFD",
		"\uFFFD": "\uFFFD",
	} {
		got, changed := model.Clean(in)
		if got != want || changed != (in != want) {
			t.Errorf("Clean(%q) = %q, %t", in, got, changed)
		}
	}
}

func TestCollectorLimit(t *testing.T) {
	t.Parallel()
	c := model.Collector{Limit: 4}
	if _, err := c.WriteString("abcd"); err != nil {
		t.Fatal(err)
	}
	n, err := c.WriteString("e")
	var e *model.Error
	if n != 0 || !errors.As(err, &e) || e.Kind != model.KindTooLarge || c.Len() != 4 {
		t.Errorf("%d, %v, %d bytes kept", n, err, c.Len())
	}
}

// FuzzCollector checks that the answer does not depend on how it was cut into
// parts, and that what was streamed is valid and the same.
func FuzzCollector(f *testing.F) {
	f.Add("plain", uint8(1))
	f.Add("日本語 grün", uint8(1))
	f.Add("a\xff\x00\xe6\x97", uint8(2))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		var told strings.Builder
		c := model.Collector{OnText: func(s string) {
			if !utf8.ValidString(s) || s == "" {
				t.Errorf("told %q", s)
			}
			told.WriteString(s)
		}}
		for rest := text; rest != ""; {
			n := min(int(size)+1, len(rest))
			if _, err := c.WriteString(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		got, changed := c.Finish()
		want, wantChanged := model.Clean(text)
		if got != want || changed != wantChanged {
			t.Errorf("%q, want %q", got, want)
		}
		if !changed && told.String() != text {
			t.Errorf("told %q of %q", told.String(), text)
		}
	})
}

func request() *model.Request {
	temperature, seed := 0.7, int64(1)
	return &model.Request{
		System: "be brief", Prompt: "what is it?",
		Documents: []model.Document{
			{File: "src/a.go", StartLine: 10, Text: "one\ntwo\n"},
			{File: "b \"c\".txt", StartLine: 1, Text: "no end"},
			{File: "empty", StartLine: 1},
		},
		Temperature: &temperature, Seed: &seed, MaxOutputTokens: 100,
	}
}

// TestRender pins the form: it is part of what calls are recognised by.
func TestRender(t *testing.T) {
	t.Parallel()
	want := `what is it?

=== document 1 of 3: "src/a.go" lines 10-11 ===
one
two
=== end of document 1 ===

=== document 2 of 3: "b \"c\".txt" lines 1-1 ===
no end
=== end of document 2 ===

=== document 3 of 3: "empty" lines 1-1 ===

=== end of document 3 ===
`
	if diff := cmp.Diff(want, model.Render(request())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff("be brief\n\n"+want, model.RenderAll(request())); diff != "" {
		t.Error(diff)
	}
	if got := model.Render(&model.Request{Prompt: "p"}); got != "p" {
		t.Errorf("prompt alone: %q", got)
	}
}

// TestHash pins the hash: a change makes every journal that was written before
// useless.
func TestHash(t *testing.T) {
	t.Parallel()
	const want = "e92f2554cc3a57cc73146c12a8035e42edc264f4093e87ec87759bdee0618ece"
	if got := model.Hash("openai:small", request()); got != want {
		t.Errorf("hash = %s, want %s", got, want)
	}
	seen := map[string]string{model.Hash("m", request()): "the request"}
	for name, change := range map[string]func(*model.Request){
		"system":            func(r *model.Request) { r.System += " " },
		"prompt":            func(r *model.Request) { r.Prompt += " " },
		"system to prompt":  func(r *model.Request) { r.System, r.Prompt = "be", " brief"+r.Prompt },
		"file":              func(r *model.Request) { r.Documents[0].File = "x" },
		"line":              func(r *model.Request) { r.Documents[0].StartLine++ },
		"text":              func(r *model.Request) { r.Documents[0].Text += "x" },
		"file to text":      func(r *model.Request) { r.Documents[0].File, r.Documents[0].Text = "src/a.g", "oone\ntwo\n" },
		"fewer documents":   func(r *model.Request) { r.Documents = r.Documents[:2] },
		"temperature":       func(r *model.Request) { *r.Temperature = 0 },
		"no temperature":    func(r *model.Request) { r.Temperature = nil },
		"seed":              func(r *model.Request) { *r.Seed = -1 },
		"no seed":           func(r *model.Request) { r.Seed = nil },
		"sample":            func(r *model.Request) { r.Sample = 1 },
		"another sample":    func(r *model.Request) { r.Sample = 2 },
		"limit for answers": func(r *model.Request) { r.MaxOutputTokens = 0 },
	} {
		req := request()
		change(req)
		hash := model.Hash("m", req)
		if other, ok := seen[hash]; ok {
			t.Errorf("%s has the hash of %s", name, other)
		}
		seen[hash] = name
	}
	if other, ok := seen[model.Hash("other", request())]; ok {
		t.Errorf("another model has the hash of %s", other)
	}
	req := request()
	req.OnText = func(string) {}
	if seen[model.Hash("m", req)] != "the request" {
		t.Error("OnText changes the hash")
	}
}

func FuzzRedact(f *testing.F) {
	f.Add("Bearer abcdefgh", "secret")
	f.Add("http://a:b@c/?key=1234", "\xff")
	f.Fuzz(func(t *testing.T, text, secret string) {
		got := model.Redact(text, secret)
		if len(secret) >= 4 && strings.Contains(got, secret) && !strings.Contains("[redacted]", secret) && !overlaps(secret) {
			t.Errorf("Redact(%q, %q) = %q", text, secret, got)
		}
	})
}

// overlaps: masking may put text together that looks like such a secret.
func overlaps(secret string) bool {
	for i := 1; i < len(secret); i++ {
		if strings.HasSuffix("[redacted]", secret[:i]) || strings.HasPrefix("[redacted]", secret[i:]) {
			return true
		}
	}
	return false
}

// A conversation is rendered with a line before each message, and is part of the hash; the
// hash of a request without one is what it was before there were conversations.
func TestMessages(t *testing.T) {
	t.Parallel()
	req := &model.Request{System: "s", Prompt: "p"}
	const before = "b0e0851bdb509c1b"
	plain := model.Hash("m", req)
	talk := *req
	talk.Messages = []model.Message{{Reply: true, Text: "a"}, {Text: "b"}, {Reply: true, Text: "c"}, {Text: "d"}}
	want := "s\n\np\n\n=== reply 1 ===\na\n\n=== message 2 ===\nb\n\n=== reply 2 ===\nc\n\n=== message 3 ===\nd"
	if got := model.RenderAll(&talk); got != want {
		t.Errorf("rendered %q, want %q", got, want)
	}
	if got := model.Hash("m", &talk); got == plain {
		t.Error("the messages are not part of the hash")
	}
	other := talk
	other.Messages = []model.Message{{Text: "a"}, {Text: "b"}, {Reply: true, Text: "c"}, {Text: "d"}}
	if model.Hash("m", &other) == model.Hash("m", &talk) {
		t.Error("whose a message is, is not part of the hash")
	}
	if !strings.HasPrefix(plain, before) {
		t.Errorf("the hash of a request without messages became %s", plain)
	}
}
