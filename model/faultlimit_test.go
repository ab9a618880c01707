package model_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/model"
)

// limitCase is a reply of a server with a limit that a request passes, or with another error that
// speaks of tokens or limits.
type limitCase struct {
	Server  string `json:"server"`
	Status  int    `json:"status"`
	Body    string `json:"body"`
	Want    string `json:"want"`
	Most    int    `json:"most"`
	Counted int    `json:"counted"`
}

func limitCases(tb testing.TB) []limitCase {
	tb.Helper()
	data, err := os.ReadFile("testdata/limits.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	var cases []limitCase
	for line := range bytes.Lines(data) {
		var c limitCase
		if err := json.Unmarshal(line, &c); err != nil {
			tb.Fatal(err)
		}
		cases = append(cases, c)
	}
	return cases
}

// A text that is too long is distinguished from an answer that may not be as long, and both from
// limits of other things.
func TestTokenLimits(t *testing.T) {
	t.Parallel()
	for _, c := range limitCases(t) {
		f := model.ReadFault(strings.NewReader(c.Body))
		got, passed := f.TokenLimit(c.Status)
		kind := "other"
		switch {
		case passed && got.Output:
			kind = "output"
		case passed:
			kind = "text"
		}
		if kind != c.Want {
			t.Errorf("%s is %s, want %s: %s", c.Server, kind, c.Want, f.Message)
			continue
		}
		if c.Most > 0 && (got.Most != c.Most || got.Counted != c.Counted) {
			t.Errorf("%s: limit %d of %d, want %d of %d: %s", c.Server, got.Most, got.Counted, c.Most, c.Counted, f.Message)
		}
		if isTooLong := f.Kind(c.Status) == model.KindTooLong; isTooLong != (c.Want == "text") {
			t.Errorf("%s: kind %s", c.Server, f.Kind(c.Status))
		}
	}
}

// FuzzFault checks that no reply of a server makes the reader of errors panic, and that what it
// reads of a limit can be.
func FuzzFault(f *testing.F) {
	for _, c := range limitCases(f) {
		f.Add(c.Status, []byte(c.Body))
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		fault := model.ReadFault(bytes.NewReader(body))
		limit, passed := fault.TokenLimit(status)
		if limit.Most < 0 || limit.Counted < 0 || !passed && limit != (model.TokenLimit{}) {
			t.Errorf("%+v, %t", limit, passed)
		}
		if text := fault.Text(); strings.ToValidUTF8(text, "") != text {
			t.Errorf("text %q", text)
		}
	})
}
