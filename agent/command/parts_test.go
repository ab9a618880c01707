package command_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text   string
		status int
		kind   agent.Kind
		until  time.Duration
	}{
		{"something else", 0, agent.KindFailed, 0},
		{"something else", 429, agent.KindRateLimit, 0},
		{"something else", 402, agent.KindQuota, 0},
		{"something else", 413, agent.KindOverflow, 0},
		{"something else", 529, agent.KindUnavailable, 0},
		{"something else", 400, agent.KindFailed, 0},
		{"something else", 404, agent.KindInvalid, 0},
		{"something else", 403, agent.KindAuth, 0},
		{"rate limit reached for your organization", 403, agent.KindRateLimit, 0},
		{"exceeded retry limit, last status: 429 Too Many Requests", 0, agent.KindRateLimit, 0},
		{"Quota exceeded. Check your plan and billing details.", 0, agent.KindQuota, 0},
		{"You exceeded your current quota. Please retry in 34.5s.", 429, agent.KindRateLimit, 34500 * time.Millisecond},
		{"Your credit balance is too low to access the API", 400, agent.KindQuota, 0},
		{"You've hit your usage limit. Upgrade to Pro or try again in 2 days 3 hours 4 minutes.", 0, agent.KindRateLimit,
			51*time.Hour + 4*time.Minute},
		{"You've hit your usage limit. Try again at Nov 21st, 2026 3:05 PM.", 0, agent.KindRateLimit,
			27*time.Hour + 5*time.Minute},
		{"You've hit your limit · resets 3pm", 0, agent.KindRateLimit, 3 * time.Hour},
		{"You've hit your limit · resets at 11:30am", 0, agent.KindRateLimit, 23*time.Hour + 30*time.Minute},
		{"You've hit your session limit · resets 11:30pm (UTC)", 0, agent.KindRateLimit, 11*time.Hour + 30*time.Minute},
		{"You’ve hit your weekly limit · resets Nov 22, 3pm (Etc/UTC)", 0, agent.KindRateLimit, 51 * time.Hour},
		{"You've hit your Opus limit · resets 3pm (UTC)", 0, agent.KindRateLimit, 3 * time.Hour},
		{"Opus weekly limit reached ∙ resets Nov 21 at 1pm (UTC)", 0, agent.KindRateLimit, 25 * time.Hour},
		{"5-hour limit reached ∙ resets 3pm", 0, agent.KindRateLimit, 3 * time.Hour},
		{"You're out of extra usage · resets 3pm (UTC)", 0, agent.KindRateLimit, 3 * time.Hour},
		{"You're out of extra usage", 0, agent.KindQuota, 0},
		{"This organization has been disabled.", 403, agent.KindQuota, 0},
		{"Your organization has disabled Claude subscription access", 403, agent.KindQuota, 0},
		{"the function hit its recursion limit", 0, agent.KindFailed, 0},
		{"Claude AI usage limit reached|1795183200", 0, agent.KindRateLimit, 2 * time.Hour},
		{"rate limit, resets 2026-11-20T12:30:00Z", 0, agent.KindRateLimit, 30 * time.Minute},
		{"rate limit, retry after 20", 0, agent.KindRateLimit, 20 * time.Second},
		{"rate limit, resets in 100 weeks", 0, agent.KindRateLimit, 0},
		{"rate limit, reset 2020-11-20T12:30:00Z", 0, agent.KindRateLimit, 0},
		{"Codex ran out of room in the model's context window.", 0, agent.KindOverflow, 0},
		{"Prompt is too long", 400, agent.KindOverflow, 0},
		{"Invalid API key · Please run /login", 0, agent.KindAuth, 0},
		{"unexpected status 401 Unauthorized: no", 0, agent.KindAuth, 0},
		{"The model `m` does not exist", 0, agent.KindInvalid, 0},
		{"There's an issue with the selected model (x).", 404, agent.KindInvalid, 0},
		{"error: unexpected argument '--x' found", 0, agent.KindInvalid, 0},
		{"Selected model is at capacity.", 0, agent.KindUnavailable, 0},
		{"connect ECONNREFUSED 127.0.0.1:1", 0, agent.KindUnavailable, 0},
		{"No conversation found with session ID: x", 0, agent.KindSession, 0},
		{"Reached max turns (3)", 0, agent.KindLimit, 0},
	}
	for _, tt := range tests {
		e := command.Classify(tt.text, tt.status, testNow())
		until := time.Duration(0)
		if !e.Until.IsZero() {
			until = e.Until.Sub(testNow())
		}
		if e.Kind != tt.kind || until != tt.until {
			t.Errorf("%q, %d: %s until %v, want %s until %v", tt.text, tt.status, e.Kind, until, tt.kind, tt.until)
		}
		if e.Class() == agent.ClassSetup && e.Hint == "" {
			t.Errorf("%q: no hint", tt.text)
		}
	}
	long := command.Classify("\x1b[91mkey sk-abcdefghijklmnopqrstuvwx\x1b[0m\n"+strings.Repeat("é", 1000), 0, testNow())
	if !strings.HasPrefix(long.Msg, "key [redacted] é") || len(long.Msg) > 700 || !utf8.ValidString(long.Msg) {
		t.Errorf("message %q", long.Msg)
	}
}

// A script that starts a vendor's agent and ends with its exact words about a limit waits too; a program
// that only mentions limits does not.
func TestLimitBehindAScript(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]agent.Kind{
		"You've hit your session limit · resets 3pm (UTC)\n":                   agent.KindRateLimit,
		"working\nClaude AI usage limit reached|1795183200\n":                  agent.KindRateLimit,
		"\x1b[31m■ You've hit your usage limit. Try again in 2 days.\x1b[0m\n": agent.KindRateLimit,
		"Opus weekly limit reached ∙ resets 3pm\ndone\n":                       agent.KindRateLimit,
		"expected \"You've hit your session limit\", got \"ok\"\n":             agent.KindFailed,
		"FAIL: weekly limit reached is not shown\n":                            agent.KindFailed,
		"rate limit test failed\n":                                             agent.KindFailed,
	} {
		for _, rec := range []command.Recorded{{Stdout: text}, {Stderr: text}} {
			rec.Exit, rec.Now = 1, testNow()
			_, res, err := command.Replay(t.Context(), rec)
			if o := outlineOf(res, err); o.Kind != want {
				t.Errorf("%q: %s, want %s", text, o.Kind, want)
			}
		}
	}
}

// Waits of a Retry-After header count up to 60 days.
func TestOpencodeRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"20":                            20 * time.Second,
		"259200":                        72 * time.Hour,
		"Mon, 23 Nov 2026 12:00:00 GMT": 72 * time.Hour,
		"99999999":                      0,
		"Fri, 20 Nov 2020 12:00:00 GMT": 0,
		"soon":                          0,
	} {
		line := `{"type":"error","error":{"name":"APIError","data":{"message":"slow down","statusCode":429,` +
			`"responseHeaders":{"retry-after":"` + value + `"}}}}` + "\n"
		rec := command.Recorded{Preset: "opencode", Stdout: line, Exit: 1, Now: testNow()}
		_, res, err := command.Replay(t.Context(), rec)
		if o := outlineOf(res, err); o.Kind != agent.KindRateLimit || o.Until != want {
			t.Errorf("%q: %s until %v, want %v", value, o.Kind, o.Until, want)
		}
	}
}

func TestSessionText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"":              {"", ""},
		"id":            {"id", "id"},
		"id#1.2.3.4.5":  {"id", "id#1.2.3.4.5"},
		"a#b#1.2.3.4.5": {"a#b", "a#b#1.2.3.4.5"},
		"id#1.2":        {"id#1.2", "id#1.2"},
		"id#1.2.3.4.-5": {"id#1.2.3.4.-5", "id#1.2.3.4.-5"},
		"id#1.2.3.4.x":  {"id#1.2.3.4.x", "id#1.2.3.4.x"},
	} {
		id, again := command.SessionOf(text)
		if id != want[0] || again != want[1] {
			t.Errorf("%q: %q, %q", text, id, again)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		chunks   []string
		leaveOut bool
		want     []string
		long     int
	}{
		{[]string{"a\nb", "c\r\n", "\nd"}, false, []string{"a", "bc", "", "d"}, 0},
		{[]string{"12345678\n12345678", "9\nx\n"}, true, []string{"12345678", "x"}, 1},
		{[]string{"123456789", "012345678\nx"}, false, []string{"12345678", "90123456", "78", "x"}, 0},
		{[]string{"1234567é\n"}, false, []string{"1234567", "é"}, 0},
		{[]string{"1234567\xff\xff\n"}, false, []string{"1234567\xff", "\xff"}, 0},
	}
	for _, tt := range tests {
		got, long := command.Split(tt.chunks, 8, tt.leaveOut)
		if diff := cmp.Diff(tt.want, got); diff != "" || long != tt.long {
			t.Errorf("%q: %d long lines\n%s", tt.chunks, long, diff)
		}
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	if text, cut := command.Tail([]string{"ab", "cd"}, 4); text != "abcd" || cut {
		t.Errorf("%q, %v", text, cut)
	}
	if text, cut := command.Tail([]string{"abc", "défgh"}, 4); text != "fgh" && text != "éfgh" || !cut {
		t.Errorf("%q, %v", text, cut)
	}
	if text, cut := command.Tail([]string{strings.Repeat("é", 10)}, 5); text != "éé" || !cut {
		t.Errorf("%q, %v", text, cut)
	}
}

func TestWatchdog(t *testing.T) {
	t.Parallel()
	type step struct {
		after time.Duration
		do    string
		until time.Duration // from now, of "limited"
	}
	const idle, patience, linger = 10 * time.Minute, 2 * time.Minute, time.Minute
	tests := []struct {
		name  string
		steps []step
		at    time.Duration // when it ends the turn
		cause string
	}{
		{"silence", nil, idle, "idle"},
		{"noise", []step{{9 * time.Minute, "heard", 0}, {9 * time.Minute, "heard", 0}}, 28 * time.Minute, "idle"},
		{"a limit is not silence", []step{{9 * time.Minute, "limited", 0}, {time.Minute, "heard", 0}}, 11 * time.Minute,
			"rate_limit"},
		{"limits in a row", []step{{0, "limited", 0}, {time.Minute, "limited", 0}, {30 * time.Second, "limited", 0}},
			2 * time.Minute, "rate_limit"},
		{"work in between", []step{{0, "limited", 0}, {time.Minute, "progress", 0}, {time.Minute, "limited", 0}},
			4 * time.Minute, "rate_limit"},
		{"work afterwards", []step{{0, "limited", 0}, {time.Minute, "progress", 0}}, 11 * time.Minute, "idle"},
		{"a long limit", []step{{time.Minute, "limited", time.Hour}}, time.Minute, "rate_limit"},
		{"a short limit", []step{{time.Minute, "limited", time.Minute}}, 3 * time.Minute, "rate_limit"},
		{"after the end", []step{{time.Minute, "over", 0}, {30 * time.Second, "heard", 0}}, 150 * time.Second,
			"the agent went on after the end of its turn"},
		{"a turn of its own", []step{{time.Minute, "over", 0}, {30 * time.Second, "progress", 0}}, 690 * time.Second, "idle"},
		{"ended", []step{{time.Minute, "stop", 0}, {0, "limited", time.Hour}, {0, "heard", 0}}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				w := command.NewWatchdog(t.Context(), idle, patience, linger)
				for _, s := range tt.steps {
					time.Sleep(s.after)
					until := time.Time{}
					if s.until > 0 {
						until = time.Now().Add(s.until)
					}
					w.Do(s.do, until)
				}
				synctest.Wait()
				for w.Cause() == "" && time.Since(start) < time.Hour {
					time.Sleep(time.Second)
					synctest.Wait()
				}
				at := time.Since(start)
				if tt.cause == "" {
					at = 0
				}
				if w.Cause() != tt.cause || at != tt.at {
					t.Errorf("ended after %v because %q, want %v, %q", at, w.Cause(), tt.at, tt.cause)
				}
				w.Do("stop", time.Time{})
			})
		})
	}
}
