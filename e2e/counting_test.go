package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// countingEndpoint is an endpoint that counts the requests it gets and the tokens it reports, and
// answers some of them wrongly the first time. One that ignores the limit of answers does so
// always, as servers that do not know the parameter.
type countingEndpoint struct {
	mu       sync.Mutex // guards the fields below
	rng      *rand.Rand
	faults   bool
	ignores  bool // the limit of answers
	seen     map[string]bool
	requests int64
	input    int64
	output   int64
	largest  int64 // tokens of one request
	longest  int   // bytes of the text of one request
}

const (
	maxAnswer   = 60 // --max-output-tokens
	answerUsage = 20
)

func (c *countingEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req struct{ Messages []struct{ Content string } }
	raw, _ := io.ReadAll(r.Body)
	if json.Unmarshal(raw, &req) != nil {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	var text strings.Builder
	for _, m := range req.Messages {
		text.WriteString(m.Content)
	}
	c.mu.Lock()
	c.requests++
	fault, delay := c.fault(text.String()), time.Duration(c.rng.IntN(12))*time.Millisecond
	input, output := int64(text.Len()/4), int64(answerUsage)
	answer := `"x"`
	switch fault {
	case "over": // more than was asked for
		answer, output = `"`+strings.Repeat("word ", 2000)+`"`, 2000
	case "empty":
		answer, output = `""`, 0
	case "down", "limited":
		input, output = 0, 0
	}
	c.input, c.output = c.input+input, c.output+output
	c.largest, c.longest = max(c.largest, input+output), max(c.longest, text.Len())
	c.mu.Unlock()
	select { // a model takes its time; nothing depends on how much
	case <-time.After(delay):
	case <-r.Context().Done():
	}
	switch fault {
	case "down":
		http.Error(w, `{"error":{"message":"down"}}`, http.StatusServiceUnavailable)
		return
	case "limited":
		w.Header().Set("Retry-After", "0")
		http.Error(w, `{"error":{"message":"limited"}}`, http.StatusTooManyRequests)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"choices":[{"message":{"content":%s},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, answer, input, output)
}

// fault chooses a fault for the first request with a text, "" for none.
func (c *countingEndpoint) fault(text string) string {
	fault := ""
	if c.faults && !c.seen[text] {
		c.seen[text] = true
		fault = []string{"empty", "down", "limited", "", "", "", "", "", "", "", "", ""}[c.rng.IntN(12)]
	}
	if fault == "" && c.ignores {
		return "over"
	}
	return fault
}

// status is what `perdure status TREE --json` reports of a tree.
type treeStatus struct {
	State string `json:"state"`
	Usage struct {
		Calls     int64   `json:"calls"`
		Input     int64   `json:"input_tokens"`
		Output    int64   `json:"output_tokens"`
		Uncertain int64   `json:"uncertain_calls"`
		Cost      float64 `json:"cost_usd"`
	} `json:"usage"`
	Limits []struct {
		Limit string
		Value int64
		Used  int64
	}
}

// TestRandomRunsCountAsTheEndpoint runs trees with random budgets, concurrency, faults of
// the endpoint and kills, and compares what perdure shows with what the endpoint counted.
// PERDURE_RANDOM_RUNS sets their number.
func TestRandomRunsCountAsTheEndpoint(t *testing.T) {
	t.Parallel()
	n := number(t, "PERDURE_RANDOM_RUNS", 6, 100)
	first := uint64(seed(t))
	for i := range n {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			(&randomRun{t: t, rng: rand.New(rand.NewPCG(first, uint64(i)))}).run()
		})
	}
}

// randomRun is one run of TestRandomRunsCountAsTheEndpoint.
type randomRun struct {
	t      *testing.T
	rng    *rand.Rand
	c      *countingEndpoint
	b      *bed
	budget string // the flag, "" for none
	limit  int64  // in the unit of treeStatus.Limits
	killed int
}

func (r *randomRun) run() {
	r.t.Helper()
	r.c = &countingEndpoint{rng: rand.New(rand.NewPCG(r.rng.Uint64(), 1)), faults: r.rng.IntN(2) == 0,
		ignores: r.rng.IntN(4) == 0, seen: map[string]bool{}}
	web := httptest.NewServer(r.c)
	defer web.Close()
	r.b = newBed(r.t, "hash")
	r.b.url = web.URL + "/v1"
	prices := "models:\n  openai:scripted: {input: 2, output: 10}\n"
	if err := os.MkdirAll(filepath.Join(r.b.dir, ".perdure"), 0o700); err != nil {
		r.t.Fatal(err)
	}
	file := filepath.Join(r.b.dir, "prices.yaml")
	if err := os.WriteFile(file, []byte(prices), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.b.how = []string{"--merge", "merge",
		"--chunk-tokens", "700", "--max-output-tokens", fmt.Sprint(maxAnswer), "--planner", "split",
		"--concurrency", fmt.Sprint(1 + r.rng.IntN(16))}
	r.choose()
	kills := r.rng.IntN(3)
	for range kills + 1 {
		if trees := r.b.trees(); len(trees) == 0 || !trees[0].State.Terminal() {
			r.step(kills > r.killed)
		}
	}
	web.Close() // all requests are counted
	r.compare()
}

// choose chooses a budget.
func (r *randomRun) choose() {
	switch r.rng.IntN(4) {
	case 1:
		r.limit = 1 + r.rng.Int64N(25)
		r.budget = "calls"
	case 2:
		r.limit = 2000 + r.rng.Int64N(18_000)
		r.budget = "tokens"
	case 3:
		r.limit = 6000 + r.rng.Int64N(40_000)
		r.budget = "cost_micros"
	}
	flags := map[string]string{"calls": "--budget-calls", "tokens": "--budget-tokens", "cost_micros": "--budget-usd"}
	switch {
	case r.budget == "cost_micros":
		r.b.how = append(r.b.how, flags[r.budget], fmt.Sprintf("%.6f", float64(r.limit)/1e6))
	case r.budget != "":
		r.b.how = append(r.b.how, flags[r.budget], fmt.Sprint(r.limit))
	}
}

// step runs or resumes the tree, and kills the program at a random moment or lets it end.
func (r *randomRun) step(kill bool) {
	r.t.Helper()
	cmd := r.b.next("PERDURE_PRICES=" + filepath.Join(r.b.dir, "prices.yaml"))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	if kill {
		timer := time.AfterFunc(time.Duration(r.rng.Int64N(int64(300*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	// A run that does not end prints where it waits, and has the exit status 2.
	hung := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer hung.Stop()
	err := cmd.Wait()
	if killed(err) {
		r.killed++
		return
	}
	if s := exitOf(err); s != 0 && s != 3 {
		r.t.Fatalf("exit status %d\n%s", s, out.String())
	}
}

func (r *randomRun) status(tree string) treeStatus {
	r.t.Helper()
	raw, err := r.b.command(nil, "status", tree, "--json").Output()
	var s treeStatus
	if err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		r.t.Fatalf("status: %v\n%s", err, raw)
	}
	return s
}

// compare compares what is shown with what was counted.
func (r *randomRun) compare() {
	r.t.Helper()
	trees := r.b.trees()
	if len(trees) == 0 {
		if r.c.requests > 0 {
			r.t.Errorf("%d requests without a tree", r.c.requests)
		}
		return // killed before there was one
	}
	s, c := r.status(string(trees[0].ID)), r.c
	u := s.Usage
	// A call with unknown outcome was sent or not, and answered or not.
	if c.requests > u.Calls || c.requests < u.Calls-u.Uncertain {
		r.t.Errorf("%d calls shown, %d of them with unknown outcome; the endpoint counted %d", u.Calls, u.Uncertain,
			c.requests)
	}
	for name, pair := range map[string][2]int64{"input": {u.Input, c.input}, "output": {u.Output, c.output}} {
		if missing := pair[1] - pair[0]; missing < 0 || missing > u.Uncertain*c.largest {
			r.t.Errorf("%d %s tokens shown, the endpoint counted %d; %d calls with unknown outcome", pair[0], name, pair[1],
				u.Uncertain)
		}
	}
	if want := float64(u.Input)*2e-6 + float64(u.Output)*10e-6; u.Cost < want-1e-6*float64(u.Calls+1) ||
		u.Cost > want+1e-6*float64(u.Calls+1) {
		r.t.Errorf("$%f shown, want $%f", u.Cost, want)
	}
	r.t.Logf("%s, budget %q, %d kills, %d requests of %d calls, %d with unknown outcome", s.State, r.budget, r.killed,
		c.requests, u.Calls, u.Uncertain)
	r.withinBudget(&s)
	if out, err := r.b.command(nil, "doctor").CombinedOutput(); err != nil {
		r.t.Errorf("doctor: %v\n%s", err, out)
	}
}

// withinBudget checks that the budget was exceeded by one call at most, and that no part was
// left out that it could pay.
func (r *randomRun) withinBudget(s *treeStatus) {
	r.t.Helper()
	if r.budget == "" {
		want := "completed"
		if r.c.ignores { // its answers are cut
			want = "partial"
		}
		if s.State != want {
			r.t.Errorf("the tree is %s without a budget, want %s", s.State, want)
		}
		return
	}
	over := map[string]int64{"calls": 0, "tokens": r.c.largest, "cost_micros": 10 * r.c.largest}[r.budget]
	reserved := int64(r.c.longest/3 + 1)
	one := map[string]int64{"calls": 1, "tokens": reserved + maxAnswer, "cost_micros": 2*reserved + 10*maxAnswer}[r.budget]
	for _, l := range s.Limits {
		switch {
		case l.Limit != r.budget:
		case l.Used > l.Value+over:
			r.t.Errorf("%d of %d %s used", l.Used, l.Value, l.Limit)
		case s.State == "partial" && l.Value-l.Used >= one:
			r.t.Errorf("parts are missing, and %d of %d %s are left: a call takes %d at most", l.Value-l.Used, l.Value, l.Limit,
				one)
		}
	}
}
