package meter

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Without the token, or with the name of another host, nothing reaches the provider.
func TestRefusesOthers(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(http.ResponseWriter, *http.Request) {})
	m := start(t, p.URL)
	token := "/" + m.token
	for _, test := range []struct{ name, host, path string }{
		{"no token", m.host, "/openai/v1/chat/completions"},
		{"wrong token", m.host, "/" + strings.Repeat("A", len(m.token)) + "/openai/v1/models"},
		{"prefix of the token", m.host, token[:len(token)-1] + "/openai/v1/models"},
		{"token alone", m.host, token},
		{"unknown provider", m.host, token + "/elsewhere/v1/models"},
		{"host of a web page", "attacker.example", token + "/openai/v1/models"},
		{"host with another port", "127.0.0.1:1", token + "/openai/v1/models"},
		{"no port", "127.0.0.1", token + "/openai/v1/models"},
		{"token later in the path", m.host, "/x" + token + "/openai/v1/models"},
		{"dots", m.host, token + "/../openai/v1/models"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+m.host+test.path,
			strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = test.host
		resp, err := plainClient(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden || strings.Contains(string(body), m.token) {
			t.Errorf("%s: status %d, body %s", test.name, resp.StatusCode, body)
		}
	}
	// A request in the form for proxies names another host, too.
	conn, err := net.Dial("tcp", m.host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET http://attacker.example"+token+"/openai/v1/models HTTP/1.1\r\nHost: "+m.host+
		"\r\nConnection: close\r\n\r\n")
	if answer, _ := io.ReadAll(conn); !strings.Contains(string(answer), " 403 ") {
		t.Errorf("request for another host: %s", answer)
	}
	if len(p.requests) > 0 {
		t.Errorf("the provider received %+v", p.requests)
	}
	if s := m.Summary(); s.Requests+s.Others > 0 {
		t.Errorf("summary %+v", s)
	}
}

// The upstream is fixed: a path cannot lead to another host.
func TestUpstreamIsFixed(t *testing.T) {
	t.Parallel()
	other := newProvider(t, func(http.ResponseWriter, *http.Request) {})
	p := newProvider(t, func(http.ResponseWriter, *http.Request) {})
	m := start(t, p.URL)
	for _, rest := range []string{"//" + other.Listener.Addr().String() + "/x", "/@" +
		other.Listener.Addr().String() + "/",
		"/http://" + other.Listener.Addr().String(), `/%2f%2f` + other.Listener.Addr().String()} {
		conn, err := net.Dial("tcp", m.host)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET /"+m.token+"/gemini"+rest+" HTTP/1.1\r\nHost: "+m.host+"\r\nConnection: "+
			"close\r\n\r\n")
		_, _ = io.ReadAll(conn)
		_ = conn.Close()
		if got := p.last(t); got.uri != rest || got.host != p.Listener.Addr().String() {
			t.Errorf("%s arrived as %+v", rest, got)
		}
	}
	if len(other.requests) > 0 {
		t.Errorf("the other host received %+v", other.requests)
	}
}

func TestListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:80", "127.0.0.1", "x"} {
		m, err := Start(Config{Listen: address})
		if err == nil {
			_ = m.Close()
			t.Errorf("%q: started", address)
		}
	}
	for _, address := range []string{"", "127.0.0.1:0", "localhost:0"} {
		m, err := Start(Config{Listen: address})
		if err != nil {
			t.Errorf("%q: %v", address, err)
			continue
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestUpstreams(t *testing.T) {
	t.Parallel()
	got, err := Upstreams([]string{"OPENAI_API_BASE=http://127.0.0.1:1/v1/", "ANTHROPIC_BASE_URL=http://old",
		"ANTHROPIC_BASE_URL=http://proxy.example/claude"}, map[Provider]string{Gemini: "http://g.example"})
	want := map[Provider]string{OpenAI: "http://127.0.0.1:1/v1", Anthropic: "http://proxy.example/claude",
		Gemini: "http://g.example"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, differs (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"x", "ftp://host", "http://", "http://user:secret@host", "http://h?q=secret",
		"http://h#f"} {
		_, err := Upstreams([]string{"OPENAI_BASE_URL=" + bad}, nil)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v", bad, err)
		}
		if _, _, err := ParseUpstream("openai=" + bad); err == nil {
			t.Errorf("ParseUpstream of %q: no error", bad)
		}
	}
	if _, _, err := ParseUpstream("mistral=http://h"); err == nil {
		t.Error("unknown provider: no error")
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	m, err := Start(Config{Upstreams: map[Provider]string{OpenAI: "http://127.0.0.1:9/api/v1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	base := "http://" + m.host + "/" + m.token
	got := m.Variables(Common, nil)
	want := []string{"OPENAI_BASE_URL=" + base + "/openai/api/v1", "OPENAI_API_BASE=" + base + "/openai/api/v1",
		"ANTHROPIC_BASE_URL=" + base + "/anthropic", "GOOGLE_GEMINI_BASE_URL=" + base + "/gemini"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("variables differ (-want +got):\n%s", diff)
	}
	got = m.Variables(DialectOf("opencode"), []string{"HTTP_PROXY=http://proxy", "no_proxy=intern"})
	for _, v := range []string{"ANTHROPIC_BASE_URL=" + base + "/anthropic/v1", "NO_PROXY=intern,127.0.0.1",
		"no_proxy=intern,127.0.0.1"} {
		if !strings.Contains("\n"+strings.Join(got, "\n")+"\n", "\n"+v+"\n") {
			t.Errorf("%s is missing in %v", v, got)
		}
	}
}
