package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/internal/wire"
)

const key = "very-secret-key-0123456789"

// caller returns a caller of a server at an address.
func caller(t *testing.T, address string) *wire.Caller {
	t.Helper()
	end, err := model.NewEndpoint(model.EndpointConfig{URL: address, Model: "small", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	client := model.NewHTTPClient()
	t.Cleanup(client.CloseIdleConnections)
	return &wire.Caller{
		End: end, Client: client, Header: http.Header{"X-Api-Key": {key}}, Path: "v1/things",
		Hint: func(kind model.Kind, f model.Fault) string { return fmt.Sprintf("hint for %s: %s", kind, f.Message) },
	}
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

func TestPost(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if got, want := string(body), `{"text":"a<&>\u0000\ufffd"}`; got != want {
			t.Errorf("body %s, want %s", got, want)
		}
		if r.Method != http.MethodPost || r.URL.EscapedPath() != "/a%2Fb/v1/things" || r.ContentLength != int64(len(body)) {
			t.Errorf("%s %s, length %d", r.Method, r.URL.EscapedPath(), r.ContentLength)
		}
		want := map[string]string{
			"Accept": "application/json", "Content-Type": "application/json", "X-Api-Key": key,
			"User-Agent": "perdure (https://github.com/perdure/perdure)",
		}
		for name, value := range want {
			if got := r.Header.Values(name); len(got) != 1 || got[0] != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
		_, _ = io.WriteString(w, "reply")
	})
	resp, err := caller(t, srv.URL+"/a%2Fb/").Post(t.Context(), map[string]string{"text": "a<&>\x00\xff"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if reply, err := io.ReadAll(resp.Body); string(reply) != "reply" || err != nil {
		t.Errorf("reply %q, %v", reply, err)
	}
}

func TestPostRefused(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"slow down `+key+`"}}`)
	})
	_, err := caller(t, srv.URL).Post(t.Context(), nil)
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.KindRateLimit || e.RetryAfter.Seconds() != 2 ||
		!strings.HasPrefix(e.Hint, "hint for rate_limit") {
		t.Fatalf("error = %#v", err)
	}
	if strings.Contains(e.Error(), key) || !strings.Contains(e.Error(), "slow down") {
		t.Errorf("error = %v", e)
	}
	if _, err := caller(t, srv.URL).Post(t.Context(), func() {}); !errors.As(err, &e) || e.Kind != model.KindInvalid {
		t.Errorf("a body that JSON does not know: %v", err)
	}
}

// A redirect on the same server is followed with the whole request; one to
// another server is not, because it would receive the key.
func TestRedirects(t *testing.T) {
	t.Parallel()
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("another server received %v", r.Header) })
	var target string
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/new/v1/things":
			fmt.Fprintf(w, "%s %s", r.Header.Get("X-Api-Key"), body)
		case "/loop/v1/things":
			http.Redirect(w, r, "/loop/v1/things", http.StatusPermanentRedirect)
		default:
			http.Redirect(w, r, target, http.StatusTemporaryRedirect)
		}
	})
	target = "/new/v1/things"
	resp, err := caller(t, srv.URL+"/old").Post(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); string(got) != key+" 7" {
		t.Errorf("the target received %q", got)
	}
	target = strings.Replace(other.URL, "http://", "http://user:"+key+"@", 1)
	_, err = caller(t, srv.URL+"/old").Post(t.Context(), 7)
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.KindNotFound || !strings.Contains(e.Error(), other.URL) || e.Hint == "" {
		t.Errorf("error = %v", err)
	}
	if strings.Contains(e.Error(), key) {
		t.Errorf("the key is in %v", e)
	}
	if _, err := caller(t, srv.URL+"/loop").Post(t.Context(), 7); !errors.As(err, &e) ||
		e.Kind != model.KindUnavailable {
		t.Errorf("endless redirects: %v", err)
	}
	c := caller(t, srv.URL+"/old")
	c.Client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	target = "/new/v1/things"
	resp, err = c.Post(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("status %d although the client follows no redirects", resp.StatusCode)
	}
}

func TestReadWhole(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		refused  bool
		want     error
	}{
		{"object", `{"a":1}`, false, nil},
		{"other types", `{"a":"x","b":[]}`, false, nil},
		{"another object", `{"a":1}`, true, wire.ErrNotAnswer},
		{"a mark before it", "\ufeff{}", false, nil},
		{"not JSON", `<html>`, false, wire.ErrNotAnswer},
	}
	for _, test := range tests {
		var value struct{ A, B int }
		err := wire.ReadWhole([]byte(test.in), &value, func() bool { return !test.refused })
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	type event struct{ name, data string }
	read := func(in io.Reader) (events []event, failed error) {
		for e, err := range wire.Events(in, 10) {
			if err != nil {
				return events, err
			}
			events = append(events, event{e.Name, string(e.Data)})
		}
		return events, nil
	}
	got, err := read(strings.NewReader(": hello\n\nevent: a\ndata: 1\n\nevent: none\n\ndata:\n\ndata: 2\n\ndata: cut"))
	if want := []event{{"a", "1"}, {"", "2"}, {"", "cut"}}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	got, err = read(io.MultiReader(strings.NewReader("data: 1\n\ndata: "), strings.NewReader(strings.Repeat("x", 33<<20))))
	var e *model.Error
	if len(got) != 1 || !errors.As(err, &e) || e.Kind != model.KindTooLarge {
		t.Errorf("an endless event: %v, %v", got, err)
	}
	for range wire.Events(strings.NewReader("data: 1\n\ndata: 2\n\n"), 10) {
		break // stopping early must not panic
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want string }{
		{`"plain"`, "plain"},
		{`"a\"\\\n\u00e4\ud83d\ude00"`, "a\"\\\nä😀"},
		{"\"\xe2\x82\"", "\xe2\x82"},
		{"\"\\\"\xff\\u0041\xfe\"", "\"\xffA\xfe"},
		{`""`, ""},
		{`null`, ""}, {`7`, ""}, {`{"text":"x"}`, "x"}, {`{"n":"x"}`, ""},
		{`["a","b"]`, "ab"},
		{`[{"type":"text","text":"a"},{"type":"image"},7,{"text":"b"}]`, "ab"},
	}
	for _, test := range tests {
		var got struct{ T wire.Text }
		if err := json.Unmarshal([]byte(`{"T":`+test.in+`}`), &got); err != nil || string(got.T) != test.want {
			t.Errorf("%s: %q, %v, want %q", test.in, got.T, err, test.want)
		}
	}
}

// FuzzText checks that a text is the one that encoding/json reads, and that
// bytes that are not UTF-8 are kept.
func FuzzText(f *testing.F) {
	for _, seed := range []string{`"a"`, "\"\xe2\x82\\u00e4\"", `["x",{"text":"y"}]`, `null`, `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		var got wire.Text
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		var want string
		if json.Unmarshal(data, &want) != nil {
			return
		}
		if utf8.Valid(data) {
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Errorf("%q: %s", data, diff)
			}
		} else if !bytes.ContainsAny(data, `\`) && string(got) != strings.Trim(strings.TrimSpace(string(data)), `"`) {
			t.Errorf("%q became %q", data, got)
		}
	})
}
