package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// head is the header of a request with a body, for a content type and a length.
const head = "Host: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n"

// A body that stops midway ends the request instead of holding its connection.
func TestBodyDeadline(t *testing.T) {
	t.Parallel()
	store := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	path := serve(t, server.New(server.Config{Store: store, Launcher: storeLauncher{store}, Version: "1",
		Limits: server.Limits{Body: 200 * time.Millisecond, Pause: 400 * time.Millisecond}}), shortDir(t)+"/s").Path()
	for target, kind := range map[string]string{"/v1/trees": "application/json", "/v1/contexts": "application/x-tar"} {
		c := dial(t, path)
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\n"+head+"\r\n{", target, kind, 100)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusRequestTimeout {
			t.Errorf("%s: status %s, want 408", target, res.Status)
		}
	}
	// A request whose body no handler reads gets its answer at once.
	c := dial(t, path)
	fmt.Fprintf(c, "GET /v1/nothing HTTP/1.1\r\n"+head+"\r\n", "application/json", 100)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusNotFound {
		t.Fatalf("unknown path: %v, %v", res, err)
	}
	res.Body.Close()
}

// The deadline is that of one body: a connection lives longer, and a request that waits after
// its body does too.
func TestBodyDeadlineEnds(t *testing.T) {
	t.Parallel()
	store := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	tree, err := store.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	path := serve(t, server.New(server.Config{Store: store, Launcher: storeLauncher{store}, Version: "1",
		Limits: server.Limits{Body: 100 * time.Millisecond}}), shortDir(t)+"/s").Path()
	c := dial(t, path)
	r := bufio.NewReader(c)
	send := func(line, body string) {
		t.Helper()
		fmt.Fprintf(c, "%s HTTP/1.1\r\n"+head+"\r\n%s", line, "application/json", len(body), body)
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var text strings.Builder
		if err := res.Write(&text); err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s: %v\n%s", line, err, text.String())
		}
	}
	send("POST /v1/trees", `{"prompt":"x"}`)
	send("GET /v1/trees/"+string(tree.ID)+"?wait=300ms", "")
	send("GET /v1/trees/"+string(tree.ID)+"?wait=300ms", "{}") // has a body that is not read
	send("POST /v1/trees", `{"prompt":"y"}`)
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}
