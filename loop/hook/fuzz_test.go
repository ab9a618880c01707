package hook_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/loop/hook"
)

// seeds are strings at the edges of JSON objects.
func seeds(f *testing.F, more ...string) {
	f.Helper()
	for _, text := range append(more,
		``, `{}`, `null`, `[]`, `{"metadata":null}`, `{"metadata":{}}`, `{"a":1,"a":2}`, `{"a":{"b":[{"c":1,"c":1}]}}`,
		`{"":{"":1}}`, "{\"\xff\":1}", `{"\ud800":1}`,
		strings.Repeat(`{"a":`, 70)+"1"+strings.Repeat("}", 70), `{"timestamp":"2026-02-02T24:00:00Z"}`, "\ufeff{}",
		`{"metadata":{"verdict":"BLOCK","iteration":1e400}}`,
	) {
		f.Add([]byte(text))
	}
}

// FuzzDecodeMessage: what is read is written and read again the same.
func FuzzDecodeMessage(f *testing.F) {
	seeds(f, seedMessage, `{"role":"user","metadata":{"hook_name":"on_error","inputs":{"a":[1e5,-0,"<",null,`+
		`{"b":true}]}}}`)
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := hook.DecodeMessage(text)
		if err != nil {
			if m.Content != "" || m.Metadata.HookName != "" {
				t.Errorf("%q: an error and a message: %+v", text, m)
			}
			return
		}
		written, err := m.Encode()
		if err != nil {
			if len(text) < hook.MaxMessageBytes/6 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := hook.DecodeMessage(written)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, written, err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Errorf("%q became %q: %s", text, written, diff)
		}
	})
}

// FuzzDecodeReply: what is read is written and read again the same; what is not
// has a verdict or none, and never one that does not stand there.
func FuzzDecodeReply(f *testing.F) {
	seeds(f, seedReply, seedDetection,
		`{"metadata":{"verdict":"BLOCK","inject":"x","recommendations":["a"],"details":{"diff":"y"},"x":{"b":1,"a":[ 1 ]}}}`,
		`{"metadata":{"verdict":"ALLOW","details":{},"recommendations":[]}}`)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := hook.DecodeReply(text)
		if v := r.Metadata.Verdict; v != "" && !bytes.Contains(bytes.ToUpper(text), []byte(v)) &&
			!bytes.Contains(text, []byte(`\u`)) {
			t.Errorf("%q: verdict %q", text, v)
		}
		if err != nil {
			return
		}
		if hook.Stricter("", r.Metadata.Verdict) == "" {
			t.Fatalf("%q: verdict %q", text, r.Metadata.Verdict)
		}
		written, err := r.Encode()
		if err != nil {
			if len(text) < hook.MaxDetailsBytes/6 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := hook.DecodeReply(written)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, written, err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("%q became %q: %s", text, written, diff)
		}
	})
}

// FuzzReadLog: whatever is in a log, reading ends; records are written and read
// again the same; and a whole line behind it is found.
func FuzzReadLog(f *testing.F) {
	line, err := json.Marshal(numbered("a", 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add(append(line, '\n'))
	f.Add(append(append(line, '\n'), line[:50]...))
	f.Add([]byte(`{"timestamp":"2026-02-02T21:10:05Z","hook_name":"x","error":"y","duration_ms":0.0005,"iteration":7}` +
		"\r\n\n{}\n"))
	f.Add([]byte(`{"timestamp":"0000-01-01T00:00:00Z","hook_name":"x","state_changes":{"a":1e5},"error":{"kind":7}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var records []hook.Record
		keep := func(r hook.Record) bool { records = append(records, r); return true }
		skipped, err := hook.ReadLog(bytes.NewReader(text), keep)
		if err != nil || skipped+len(records) > bytes.Count(text, []byte("\n"))+1 {
			t.Fatalf("%d skipped, %d records, %v", skipped, len(records), err)
		}
		for _, r := range records {
			written, err := r.MarshalJSON()
			if err != nil || len(written) >= hook.MaxLineBytes || bytes.ContainsAny(written, "\r\n") {
				t.Fatalf("%d bytes, %v", len(written), err)
			}
			var again hook.Record
			if err := again.UnmarshalJSON(written); err != nil {
				t.Fatalf("%s: %v", written, err)
			}
			if len(r.StateChanges) > 0 && len(text) > 10_000 {
				r.StateChanges, again.StateChanges = nil, nil // may have been left out
			}
			if diff := cmp.Diff(r, again); diff != "" {
				t.Errorf("%s: %s", written, diff)
			}
		}
		before := len(records)
		if _, err := hook.ReadLog(bytes.NewReader(append(append(text, '\n'), line...)), keep); err != nil {
			t.Fatal(err)
		}
		if got := len(records); got != 2*before+1 || records[got-1].Handler != "a" {
			t.Errorf("%d records became %d", before, got-before)
		}
	})
}

// FuzzSettings: accepted settings make handlers, and error messages do
// not repeat what may be secret.
func FuzzSettings(f *testing.F) {
	f.Add("on_error", "name", "./check", "", "block")
	f.Add("on_error", "", "", "https://x.example:1/p?q#f", "")
	f.Add("pre", "\x00", "\x00", "http://geheim:geheim@%zz", "perhaps")
	f.Fuzz(func(t *testing.T, name, called, command, url, onFault string) {
		s := hook.Settings{{Hook: hook.Name(name), Name: called, Command: command, URL: url, OnFault: hook.OnFault(onFault)}}
		err := s.Validate()
		regs, made := s.Handlers(hook.Place{})
		if (err == nil) != (made == nil) || err == nil && len(regs) != 1 {
			t.Fatalf("checked: %v, made: %v", err, made)
		}
		if err != nil {
			return
		}
		if _, err := hook.New(hook.Config{Handlers: regs}); err != nil {
			t.Errorf("the runner does not take it: %v", err)
		}
	})
}
