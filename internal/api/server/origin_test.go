package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// TestRequestsOfWebPages tries what a page in a browser can send to a proxy of the socket.
func TestRequestsOfWebPages(t *testing.T) {
	t.Parallel()
	h := server.New(server.Config{Store: testdb.Open(t, perdure.Config{Dir: t.TempDir()})})
	const body = `{"kind":"run","prompt":"x"}`
	for name, c := range map[string]struct {
		method, path, host, body string
		header                   map[string]string
		want                     int
	}{
		"a program":            {"GET", "/v1/version", "perdure", "", nil, 200},
		"curl":                 {"GET", "/v1/version", "localhost", "", nil, 200},
		"another port":         {"GET", "/v1/version", "127.0.0.1:8080", "", nil, 200},
		"IPv6":                 {"GET", "/v1/version", "[::1]:8080", "", nil, 200},
		"a rebound name":       {"GET", "/v1/version", "evil.example:8080", "", nil, 421},
		"localhost as a label": {"GET", "/v1/version", "localhost.evil.example", "", nil, 421},
		"an address":           {"GET", "/v1/version", "192.0.2.1", "", nil, 421},
		"another site": {"GET", "/v1/version", "localhost", "",
			map[string]string{"Origin": "https://evil.example"}, 403},
		"a sandboxed page":   {"GET", "/v1/version", "localhost", "", map[string]string{"Origin": "null"}, 403},
		"an image":           {"GET", "/v1/version", "localhost", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"a form":             {"POST", "/v1/trees", "localhost", body, map[string]string{"Content-Type": "text/plain"}, 415},
		"a form without one": {"POST", "/v1/trees", "localhost", body, nil, 415},
		"a form field": {"POST", "/v1/trees", "localhost", body,
			map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415},
		"a context as JSON": {"POST", "/v1/contexts", "localhost", body,
			map[string]string{"Content-Type": "application/json"}, 415},
		"JSON": {"POST", "/v1/trees", "localhost", body,
			map[string]string{"Content-Type": "application/json; charset=utf-8"}, 503}, // there is no launcher
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			r.Host = c.host
			for key, value := range c.header {
				r.Header.Set(key, value)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("status %d, want %d: %s", w.Code, c.want, w.Body)
			}
			if w.Code >= http.StatusBadRequest && w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("the error is not a problem document: %s", w.Header())
			}
		})
	}
}
