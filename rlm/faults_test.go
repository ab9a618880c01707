package rlm_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/replyserver"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/openai"
	"github.com/perdure/perdure/rlm"
)

// faultCase is a reply of a server, and what becomes of a run that meets it.
type faultCase struct{ name, mode, arg, reply string }

// faultCases reads testdata/faults.txt.
func faultCases(t *testing.T) []faultCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list []faultCase
	for text := range strings.SplitSeq(string(raw), "\n== ") {
		head, reply, found := strings.Cut(text, "\n")
		name, want, ok := strings.Cut(head, " | ")
		if !ok {
			continue // the explanation
		}
		headers, body, divided := strings.Cut(reply, "\n\n")
		mode, arg, named := strings.Cut(want, ": ")
		if !found || !divided || !named {
			t.Fatalf("case %q is not complete", name)
		}
		list = append(list, faultCase{name, mode, arg, fmt.Sprintf("%s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
			strings.ReplaceAll(headers, "\n", "\r\n"), len(body), body)})
	}
	return list
}

// servedModel returns a model "openai:f" at a server, as the program asks it, but with short waits.
func servedModel(t *testing.T, url string, change ...func(*model.GuardedConfig)) model.Model {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	m, err := openai.New(openai.Config{Model: "f", BaseURL: url, APIKey: "k", HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	cfg := model.GuardedConfig{Model: m, Name: "openai:f", UntilAnswer: 1, Concurrency: 8,
		InitialBackoff: time.Millisecond, MaxBackoff: time.Millisecond}
	for _, c := range change {
		c(&cfg)
	}
	g, err := model.NewGuarded(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// faultParts is the number of parts of the runs below.
const faultParts = 24

// faultRun runs a prompt over many parts.
func (b *bench) faultRun(name string, more M) (perdure.Tree, perdure.Task) {
	b.Helper()
	config := M{"model": name, "planner": "split", "merge": "concatenate", "chunk_tokens": 100, "max_children": 50}
	for k, v := range more {
		config[k] = v
	}
	id := b.put(file{"a.txt", numbered(10 * faultParts)})
	return b.finish(b.launch("q", id, config).ID, 8)
}

func TestServersThatAnswerNothingAreAskedThreeTimesAtMost(t *testing.T) {
	t.Parallel()
	for _, c := range faultCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := replyserver.Start(t, func(r replyserver.Request) []byte {
				switch {
				case c.mode == "stops", c.mode == "once" && fmt.Sprint(r.Number) == c.arg,
					c.mode == "part" && strings.Contains(string(r.Body), "line 000100"):
					return []byte(c.reply)
				}
				return replyserver.Chat("fine")
			})
			b := newBench(t, models{"openai:f": servedModel(t, server.URL)})
			tree, root := b.faultRun("openai:f", nil)
			if c.mode != "stops" {
				b.wantParts(&c, &tree, &root)
				return
			}
			if n := len(server.Requests()); n > 3 {
				t.Errorf("%d requests were sent, want at most 3", n)
			}
			if tree.State != perdure.Failed || root.Error.Kind != rlm.KindFault || !strings.Contains(root.Error.Message, c.arg) {
				t.Errorf("the tree is %s: %+v, want a fault with %q", tree.State, root.Error, c.arg)
			}
		})
	}
}

// wantParts compares a run with one of a server that answers in the end.
func (b *bench) wantParts(c *faultCase, tree *perdure.Tree, root *perdure.Task) {
	b.Helper()
	if c.mode == "once" && tree.State != perdure.Completed {
		b.Errorf("the tree is %s: %+v, %+v", tree.State, root.Error, data(b.T, root).Missing)
	}
	if missing := data(b.T, root).Missing; c.mode == "part" && (tree.State != perdure.Partial || len(missing) != 1) {
		b.Errorf("the tree is %s, and %d parts are missing, want 1: %+v", tree.State, len(missing), missing)
	}
}

// A wait that is longer than the user allows opens a gate in place of a wait; the answer retry has
// the model be asked again at once.
func TestALongWaitOpensAGate(t *testing.T) {
	t.Parallel()
	limited := "HTTP/1.1 429 X\r\nRetry-After: 7200\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	server := replyserver.Start(t, func(r replyserver.Request) []byte {
		if r.Number == 1 {
			return []byte(limited)
		}
		return replyserver.Chat("fine")
	})
	b := newBench(t, models{"openai:f": servedModel(t, server.URL)})
	b.asking()
	tree := b.launch("q", b.put(file{"a.txt", numbered(10 * faultParts)}), M{"model": "openai:f", "planner": "split",
		"merge": "concatenate", "chunk_tokens": 100, "max_children": 50})
	b.rest(tree.ID)
	g := b.gate(tree.ID)
	if g.Kind != perdure.GateRateLimit || !strings.Contains(string(g.Question), "--max-wait") {
		t.Errorf("gate %q asks %s", g.Kind, g.Question)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests before the answer, want 1", n)
	}
	b.decide(tree.ID, perdure.GateDecision{Answer: perdure.AnswerRetry})
	if got, root := b.finish(tree.ID, 8); got.State != perdure.Completed {
		t.Errorf("the tree is %s: %+v", got.State, root.Error)
	}
}

// What was answered before the fault is the result of a partial run, which is resumed with only the
// missing parts.
func TestAFaultAmidARunKeepsItsAnswers(t *testing.T) {
	t.Parallel()
	refused := "HTTP/1.1 402 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	var paid atomic.Bool
	server := replyserver.Start(t, func(r replyserver.Request) []byte {
		if r.Number > 10 && !paid.Load() {
			return []byte(refused)
		}
		return replyserver.Chat("fine")
	})
	b := newBench(t, models{"openai:f": servedModel(t, server.URL, func(c *model.GuardedConfig) { c.Concurrency = 1 })})
	tree, root := b.faultRun("openai:f", nil)
	want := len(b.leaves(tree.ID)) - 10
	if missing := data(t, &root).Missing; tree.State != perdure.Partial || len(missing) != want {
		t.Fatalf("the tree is %s, and %d parts are missing, want %d", tree.State, len(missing), want)
	}
	if n := len(server.Requests()); n > 13 {
		t.Errorf("%d requests, want at most 3 after the 10 answers", n)
	}
	paid.Store(true)
	before := len(server.Requests())
	_, err := b.exec.Resume(t.Context(), rlm.ResumeRequest{Tree: tree.ID})
	b.ok(err)
	if got, _ := b.finish(tree.ID, 8); got.State != perdure.Completed || len(server.Requests())-before != want {
		t.Errorf("the resumed tree is %s after %d requests", got.State, len(server.Requests())-before)
	}
}

// A sub-model that never answers ends a REPL: the code is not asked to go on, and resume goes on with
// its variables when the fault is mended.
func TestAFaultOfASubModelEndsARepl(t *testing.T) {
	t.Parallel()
	const refused = "HTTP/1.1 401 X\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
		`{"error":{"message":"wrong key","code":"invalid_api_key"}}`
	var mended atomic.Bool
	server := replyserver.Start(t, func(replyserver.Request) []byte {
		if mended.Load() {
			return replyserver.Chat("fine")
		}
		return []byte(refused)
	})
	m := script(t, turns("- {match: '^never', repeat: -1, text: ok}\n", block("total = 1",
		"for i in range(20):", "    try:", "        total += len(llm_query(f'q {i}'))", "    except Exception:",
		"        pass", "print(total)"), "FINAL_VAR(total)"))
	b := newBench(t, models{"mock:m": m, "openai:f": servedModel(t, server.URL)})
	config := replConfig("mock:m")
	config["sub_model"], config["repl_engine"] = "openai:f", rlm.EnginePython
	tree := b.launch("What?", b.put(file{"a.txt", "one\n"}), config)
	got, root := b.finish(tree.ID, 8)
	if n := len(server.Requests()); n > 3 {
		t.Errorf("%d requests were sent, want at most 3", n)
	}
	if notes := fmt.Sprint(data(t, &root).Notes); got.State != perdure.Partial || !strings.Contains(notes, "wrong key") ||
		!strings.Contains(notes, "export OPENAI_API_KEY") {
		t.Errorf("the tree is %s with %q, want the fault and what to type", got.State, notes)
	}
	mended.Store(true)
	_, err := b.exec.Resume(t.Context(), rlm.ResumeRequest{Tree: tree.ID})
	b.ok(err)
	got, root = b.finish(tree.ID, 8)
	if got.State != perdure.Completed || root.Result != "81" {
		t.Errorf("the resumed tree is %s with %q: %+v", got.State, root.Result, root.Error)
	}
}

// A server that never answered and is not available, as behind a gateway whose own server is gone, is
// not asked for each part anew.
func TestAServerThatIsNeverAvailableEndsTheRun(t *testing.T) {
	t.Parallel()
	server := replyserver.Start(t, func(replyserver.Request) []byte {
		return []byte("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	b := newBench(t, models{"openai:f": servedModel(t, server.URL)})
	tree, root := b.faultRun("openai:f", nil)
	if n := len(server.Requests()); n > 20 || tree.State != perdure.Failed || root.Error.Kind != rlm.KindFault {
		t.Errorf("the tree is %s after %d requests: %+v; want a fault after at most 20", tree.State, n, root.Error)
	}
}
