package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// note appends an event of a claimed task.
func note(ctx context.Context, l *perdure.Lease, n, size int) error {
	return l.AppendEvent(ctx, "tool.called", map[string]any{"n": n, "fill": strings.Repeat("x", size)})
}

// talker is a running task that can append events.
func (f *fixture) talker(t testing.TB) *perdure.Lease {
	t.Helper()
	_, err := f.store.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Root: perdure.TaskSpec{Prompt: "talk"}})
	must(t, err)
	return f.one(t)
}

// cutting is a transport whose event streams break at random places, when they
// are opened or after some bytes.
type cutting struct {
	inner http.RoundTripper

	mu   sync.Mutex // guards what follows
	rng  *rand.Rand
	cuts int
}

func (c *cutting) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.inner.RoundTrip(req)
	if err != nil || req.Header.Get("Accept") != "text/event-stream" {
		return resp, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cuts++
	if c.rng.IntN(10) == 0 {
		resp.Body.Close()
		return nil, io.ErrUnexpectedEOF
	}
	resp.Body = &cutBody{ReadCloser: resp.Body, left: c.rng.IntN(3000)}
	return resp, nil
}

type cutBody struct {
	io.ReadCloser
	left int
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// A follower whose connection breaks at random places, while others write, sees
// every event once and in order.
func TestEventsSurviveCuts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const events = 300
		seed := uint64(time.Now().UnixNano())
		cut := &cutting{inner: f.http.Transport, rng: rand.New(rand.NewPCG(seed, 0))}
		c := newClient(t, client.Config{Transport: cut})
		l := f.talker(t)
		var wg sync.WaitGroup
		defer wg.Wait()
		wg.Go(func() {
			var notes sync.WaitGroup
			for range 6 {
				notes.Go(func() {
					for i := range events / 6 {
						if err := note(t.Context(), l, i, 10); err != nil {
							t.Error(err)
						}
					}
				})
			}
			notes.Wait()
			if err := l.Complete(t.Context(), perdure.Result{}); err != nil {
				t.Error(err)
			}
		})
		last := int64(0)
		for e, err := range c.Events(t.Context(), 0, "") {
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if e.Seq != last+1 {
				t.Fatalf("seed %d: event %d after %d", seed, e.Seq, last)
			}
			last = e.Seq
			if e.Kind == perdure.EventTreeCompleted {
				break
			}
		}
		if last < events || cut.cuts < 10 {
			t.Errorf("seed %d: %d events over %d connections", seed, last, cut.cuts)
		}
	})
}

// A follower outlives its server.
func TestEventsSurviveRestart(t *testing.T) {
	t.Parallel()
	s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	h := server.New(server.Config{Store: s})
	path := shortDir(t) + "/s"
	srv := serve(t, h, path)
	session, err := s.OpenSession(t.Context(), "test")
	must(t, err)
	f := &fixture{store: s, session: session}
	l := f.talker(t)
	c := newClient(t, client.Config{Socket: path})
	last, restarts := int64(0), 0
	for e, err := range c.Events(t.Context(), 0, "") {
		must(t, err)
		if e.Seq != last+1 {
			t.Fatalf("event %d after %d", e.Seq, last)
		}
		last = e.Seq
		if e.Kind != "tool.called" && e.Kind != perdure.EventTaskStarted {
			continue
		}
		if restarts == 3 {
			break
		}
		restarts++
		srv.stop()
		must(t, note(t.Context(), l, restarts, 0)) // while no server runs
		srv = serve(t, h, path)
	}
}

// Events of one tree only, those to come included, and the end of the context.
func TestEventsOfTree(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.family(t)
		l := f.talker(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var kinds []string
		var end error
		for e, err := range f.client.Events(ctx, 0, l.Tree.ID) {
			if err != nil {
				end = err
				break
			}
			if e.Tree != l.Tree.ID {
				t.Errorf("event of tree %s", e.Tree)
			}
			kinds = append(kinds, string(e.Kind))
			switch e.Kind {
			case perdure.EventTaskStarted:
				must(t, l.Complete(t.Context(), perdure.Result{}))
			case perdure.EventTreeCompleted:
				cancel()
			default: // only listed
			}
		}
		if !errors.Is(end, perdure.ErrCanceled) {
			t.Errorf("the end is %v", end)
		}
		want := "tree.created task.created task.started task.completed tree.completed"
		if got := strings.Join(kinds, " "); got != want {
			t.Errorf("kinds %q, want %q", got, want)
		}
	})
}

// What cannot succeed is not tried again.
func TestEventsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		n := 0
		for _, err := range f.client.Events(t.Context(), 0, "tree-00000000") {
			n++
			if !errors.Is(err, perdure.ErrNotFound) {
				t.Errorf("error %v", err)
			}
		}
		if n != 1 {
			t.Errorf("%d yields", n)
		}
		a := f.send(t, "GET", "/v1/events", "", "Accept", "text/event-stream", "Last-Event-ID", "x")
		if a.status != 400 {
			t.Errorf("bad Last-Event-ID: %d %s", a.status, a.body)
		}
	})
}

// The stream as it is on the wire: number, kind, one line of data, heartbeats.
func TestEventStreamFormat(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), w,
			server.Config{Limits: server.Limits{Heartbeat: 20 * time.Millisecond}})
		f.family(t)
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://perdure/v1/events", nil)
		must(t, err)
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Last-Event-ID", "1")
		resp, err := f.http.Do(req)
		must(t, err)
		if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("content type %q", got)
		}
		lines := bufio.NewScanner(resp.Body)
		var got []string
		for lines.Scan() && lines.Text() != ": alive" {
			got = append(got, lines.Text())
		}
		resp.Body.Close()
		want := []string{": events", "", "id: 2", "event: task.created", `data: {"seq":2,"time":`}
		for i, line := range want {
			if len(got) <= i || !strings.HasPrefix(got[i], line) {
				t.Fatalf("%s: line %d is not %q:\n%s", w.name, i, line, strings.Join(got, "\n"))
			}
		}
	}
}

// A reader that stops reading is disconnected and blocks no other reader; when it
// comes back it goes on where it was.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			s := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
			h := server.New(server.Config{Store: s, Limits: server.Limits{Write: 50 * time.Millisecond}})
			disconnected := make(chan struct{})
			var once sync.Once
			c := newClient(t, w.open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(w, r)
				once.Do(func() { close(disconnected) })
			})))
			session, err := s.OpenSession(t.Context(), "test")
			must(t, err)
			l := (&fixture{store: s, session: session}).talker(t)
			const notes = 40
			last := int64(0)
			for e, err := range c.Events(t.Context(), 0, "") {
				must(t, err)
				if e.Seq != last+1 {
					t.Fatalf("event %d after %d", e.Seq, last)
				}
				last = e.Seq
				if e.Kind == perdure.EventTreeCompleted {
					break
				}
				if e.Kind != perdure.EventTaskStarted {
					continue
				}
				for i := range notes { // more than all buffers hold, while this reader does not read
					must(t, note(t.Context(), l, i, 60_000))
				}
				must(t, l.Complete(t.Context(), perdure.Result{}))
				<-disconnected
			}
			if last < notes {
				t.Errorf("last event is %d", last)
			}
		})
	}
}

// Draining ends streams and waits, and refuses new trees.
func TestDraining(t *testing.T) {
	t.Parallel()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			draining := make(chan struct{})
			f := newFixture(t, testdb.Open(t, perdure.Config{Dir: t.TempDir()}), w, server.Config{Draining: draining})
			l := f.talker(t)
			req, err := http.NewRequestWithContext(t.Context(), "GET", "http://perdure/v1/events", nil)
			must(t, err)
			req.Header.Set("Accept", "text/event-stream")
			resp, err := f.http.Do(req)
			must(t, err)
			defer resp.Body.Close()
			waited := make(chan answer, 1)
			go func() { waited <- f.send(t, "GET", fmt.Sprintf("/v1/trees/%s?wait=1h", l.Tree.ID), "") }()
			close(draining)
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				t.Errorf("the stream ended with %v", err)
			}
			if a := <-waited; a.status != 200 || !strings.Contains(string(a.body), `"state":"running"`) {
				t.Errorf("the wait ended with %d %s", a.status, a.body)
			}
			_, err = f.client.CreateTree(t.Context(), client.TreeRequest{Prompt: "p"})
			if !errors.Is(err, perdure.ErrUnavailable) {
				t.Errorf("CreateTree = %v", err)
			}
			if h, err := f.client.Health(t.Context()); err != nil || !h.Draining {
				t.Errorf("Health = %+v, %v", h, err)
			}
		})
	}
}

// A wait ends with the tree, its own time, or the caller.
func TestWait(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		l := f.talker(t)
		a := f.send(t, "GET", fmt.Sprintf("/v1/trees/%s?wait=10ms", l.Tree.ID), "")
		if a.status != 200 || !strings.Contains(string(a.body), `"state":"running"`) {
			t.Errorf("short wait: %d %s", a.status, a.body)
		}
		ctx, cancel := context.WithCancel(t.Context())
		canceled := make(chan error, 1)
		go func() {
			_, err := f.client.WaitTree(ctx, l.Tree.ID)
			canceled <- err
		}()
		cancel()
		if err := <-canceled; !errors.Is(err, perdure.ErrCanceled) {
			t.Errorf("canceled wait: %v", err)
		}
		ended := make(chan perdure.Tree, 1)
		go func() {
			tree, err := f.client.WaitTree(t.Context(), l.Tree.ID)
			if err != nil {
				t.Error(err)
			}
			ended <- tree
		}()
		must(t, l.Complete(t.Context(), perdure.Result{}))
		if tree := <-ended; tree.State != perdure.Completed {
			t.Errorf("wait ended with %s", tree.State)
		}
	})
}
