package e2e

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// These tests answer the gates of loops as programs do that an agent starts through another
// service: without a guard above them, in a session of their own, with the user's rights.

// removesTest is an agent whose iterations open a gate.
const removesTest = "rm -f tests/a"

// newGatePlace is a place for loops, whose notices go to a file.
func newGatePlace(t *testing.T, approver perdure.Approver, env ...string) *workplace {
	t.Helper()
	w := newLoopPlace(t)
	w.agent(removesTest)
	w.env = append(w.env, "PERDURE_LOOP_APPROVER="+string(approver), "PERDURE_GATE_TOKEN=",
		"PERDURE_LOOP_NOTIFY_COMMAND=cat >> "+w.beside("notices"))
	w.env = append(w.env, env...)
	return w
}

const gatedLoop = `perdure loop run 'Make the tests pass' --until 'sh check.sh' --no-wait --agent `

// opens runs the loop until its gate is open.
func (w *workplace) opens(env ...string) {
	w.t.Helper()
	out, errs, status := w.detached(gatedLoop+"'exec:sh "+w.agentFile()+"'", env...)
	wantSaid(w.t, out+errs, status, 6, "1 test removed")
}

// detached runs a command in a session without a terminal, as cron does.
func (w *workplace) detached(command string, env ...string) (out, errs string, status int) {
	w.t.Helper()
	return w.try("exec setsid -w "+command, env...)
}

// onTerminal runs a command with a terminal of its own.
func (w *workplace) onTerminal(command string, env ...string) *terminal {
	w.t.Helper()
	return onTerminal(w.t, w.command("exec "+command, env...))
}

// tokens returns the tokens in the notices, in their order.
func (w *workplace) tokens() (all []string) {
	w.t.Helper()
	raw, err := os.ReadFile(w.beside("notices"))
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var n struct {
			Gate *struct {
				Token string `json:"token"`
			} `json:"gate"`
		}
		if err := json.Unmarshal(line, &n); err != nil {
			w.t.Fatal(err)
		}
		if n.Gate != nil {
			all = append(all, n.Gate.Token)
		}
	}
	return all
}

// answer answers the gate without a terminal, with a token on standard input.
func (w *workplace) answer(answer, token string) (said string, status int) {
	w.t.Helper()
	out, errs, status := w.try(`printf '%s\n' "$TOKEN" | setsid -w perdure loop answer `+answer+" --token -",
		"TOKEN="+token)
	return out + errs, status
}

// refused checks that an answer was refused, and that the gate is open.
func (w *workplace) refused(said string, status int, why string) {
	w.t.Helper()
	wantSaid(w.t, said, status, 5, why)
	w.sh("perdure loop answer > /dev/null")
}

// TestSecurityGateApprovers: who can answer a gate, in the process of the command, over the
// daemon's socket and on PostgreSQL.
func TestSecurityGateApprovers(t *testing.T) {
	t.Parallel()
	const noTerminal = "does not run in the foreground of a terminal"
	for _, c := range []struct {
		approver perdure.Approver
		// detached and terminal are why an answer without a token is refused; empty: it is not.
		detached, terminal string
	}{
		{perdure.ApproverTerminal, noTerminal, ""},
		{perdure.ApproverToken, "the answer has no token", "the answer has no token"},
		{perdure.ApproverUser, "runs as the user that runs the loop", "runs as the user that runs the loop"},
		{perdure.ApproverAny, "", ""},
	} {
		for _, where := range []string{"alone", "daemon", "postgres"} {
			t.Run(string(c.approver)+"/"+where, func(t *testing.T) {
				t.Parallel()
				c, w := c, newGatePlace(t, c.approver)
				switch where {
				case "daemon":
					w.serve()
				case "postgres":
					if c.approver == perdure.ApproverUser {
						c.detached, c.terminal = "PostgreSQL", "PostgreSQL"
					}
					w.env = append(w.env, "PERDURE_STORE="+testdb.PostgresStore(t))
				}
				w.opens()
				out, errs, status := w.detached("perdure loop answer reject")
				if c.detached == "" {
					wantSaid(t, out+errs, status, 0, "answered gate 1")
					return
				}
				w.refused(out+errs, status, c.detached)
				said, status := w.answer("reject", perdure.NewGateToken())
				why := c.detached
				if c.approver.TakesToken() {
					why = "the token is not the one of gate 1"
				}
				w.refused(said, status, why)
				wantSaid(t, w.sh("perdure events --json"), 0, 0, `"loop.gate_refused"`, why)

				said, status = w.onTerminal("perdure loop answer reject").ends()
				if c.terminal == "" {
					wantSaid(t, said, status, 0, "answered gate 1")
					return
				}
				w.refused(said, status, c.terminal)
				if !c.approver.TakesToken() {
					return
				}
				said, status = w.answer("reject", w.tokens()[0])
				wantSaid(t, said, status, 0, "answered gate 1")
			})
		}
	}
}

// serve starts a daemon without a terminal.
func (w *workplace) serve() {
	w.t.Helper()
	short, err := os.MkdirTemp("", "pg")
	if err != nil {
		w.t.Fatal(err)
	}
	w.env = append(w.env, "PERDURE_SOCKET="+filepath.Join(short, "s"))
	cmd := w.command("exec perdure serve")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = os.RemoveAll(short)
	})
	until(w.t, "the daemon listens", func() bool { _, err := os.Stat(filepath.Join(short, "s")); return err == nil })
}

// TestSecurityGateTokenReplaced: a process that continues the loop shows a token of its own,
// with which earlier ones end, also if it is killed before it shows it. The token of one gate
// is not that of another.
func TestSecurityGateTokenReplaced(t *testing.T) {
	t.Parallel()
	w := newGatePlace(t, perdure.ApproverToken)
	w.opens()
	w.detached("perdure loop resume", "PERDURE_FAILPOINT=loop.token_replaced") // killed
	said, status := w.answer("reject", w.tokens()[0])
	w.refused(said, status, "the token is not the one of gate 1")
	all := w.resumes(2)
	if len(all) != 2 || all[0] == all[1] {
		t.Fatalf("tokens %v, want two", all)
	}
	said, status = w.answer("reject", all[0])
	w.refused(said, status, "the token is not the one of gate 1")
	said, status = w.answer("reject", all[1])
	wantSaid(t, said, status, 0, "answered gate 1")

	all = w.resumes(3)
	said, status = w.answer("reject", all[1])
	w.refused(said, status, "the token is not the one of gate 2")
	said, status = w.answer("reject", all[2])
	wantSaid(t, said, status, 0, "answered gate 2")
	w.endsWell()
}

// TestSecurityGateKilledBeforeToken: a loop that is killed between opening the gate and
// showing its token shows another one when it is resumed.
func TestSecurityGateKilledBeforeToken(t *testing.T) {
	t.Parallel()
	w := newGatePlace(t, perdure.ApproverToken)
	w.detached(gatedLoop+"'exec:sh "+w.agentFile()+"'", "PERDURE_FAILPOINT=loop.gate") // killed
	if _, err := os.Stat(w.beside("notices")); err == nil {
		t.Fatal("a notice was sent before")
	}
	said, status := w.answer("reject", w.resumes(1)[0])
	wantSaid(t, said, status, 0, "answered gate 1")
}

// TestSecurityGateTokenHidden: the token is in no file of the project and of the user's
// state, in no output, and not in the environment and the arguments of perdure. The
// environment of the notice's command is in TestNotices.
func TestSecurityGateTokenHidden(t *testing.T) {
	t.Parallel()
	w := newGatePlace(t, perdure.ApproverToken)
	log, err := os.Create(filepath.Join(w.dir, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := w.command("exec perdure loop run 'Make the tests pass' --until 'sh check.sh' --json --agent 'exec:sh "+
		w.agentFile()+"'", "PERDURE_LOG_LEVEL=debug")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	token := w.notified(1)[0]
	for _, name := range []string{"environ", "cmdline"} {
		raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), name))
		if err != nil || len(raw) == 0 || bytes.Contains(raw, []byte(token)) {
			t.Errorf("%s: %v, or contains the token", name, err)
		}
	}
	w.sh("(perdure events --json; perdure loop status --json; perdure loop answer --json; perdure loop report; " +
		"perdure loop answer; perdure answer --json) > shown 2>&1")
	said, status := w.answer("abort", token)
	wantSaid(t, said, status, 0, "answered gate 1")
	<-ended
	for _, dir := range []string{w.dir, filepath.Dir(headsFolder())} {
		tokenless(t, dir, token)
	}
}

// notified waits for n notices and returns their tokens.
func (w *workplace) notified(n int) []string {
	w.t.Helper()
	until(w.t, strconv.Itoa(n)+" notices are sent", func() bool {
		raw, _ := os.ReadFile(w.beside("notices"))
		return bytes.Count(raw, []byte("\n")) >= n
	})
	return w.tokens()
}

// resumes continues the loop without a terminal, until its gate's n-th notice, and kills the
// process. It returns the tokens.
func (w *workplace) resumes(n int) []string {
	w.t.Helper()
	cmd := w.command("exec perdure loop resume")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	all := w.notified(n)
	if err := cmd.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	_ = cmd.Wait()
	return all
}

// tokenless checks that no file of a folder contains a token.
func tokenless(t *testing.T, dir, token string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // other tests remove files
		}
		raw, err := os.ReadFile(name)
		if err == nil {
			files++
		}
		if bytes.Contains(raw, []byte(token)) || bytes.Contains(raw, []byte(strings.ReplaceAll(token, "-", ""))) {
			t.Errorf("%s contains the token", name)
		}
		return nil
	})
	if err != nil || files == 0 {
		t.Errorf("%s: %d files read, %v", dir, files, err)
	}
}

// TestSecurityGateOnTerminal: the terminal that runs the loop shows the token and takes an
// answer: alone, or with the token if the gate needs it.
func TestSecurityGateOnTerminal(t *testing.T) {
	t.Parallel()
	shown := regexp.MustCompile(`token: ((?:[0-9a-z]{4}-){3}[0-9a-z]{4})`)
	for _, approver := range []perdure.Approver{perdure.ApproverTerminal, perdure.ApproverToken} {
		t.Run(string(approver), func(t *testing.T) {
			t.Parallel()
			w := newGatePlace(t, approver)
			p := w.onTerminal("perdure loop run 'Make the tests pass' --until 'sh check.sh' --agent 'exec:sh " +
				w.agentFile() + "'")
			match := shown.FindStringSubmatch(p.until("answer: "))
			w.notified(1)
			if match == nil || match[1] != w.tokens()[0] {
				t.Fatalf("the token is not shown: %v", match)
			}
			out, errs, status := w.detached("perdure loop answer abort")
			w.refused(out+errs, status, "token")
			p.until("refused an answer of process")
			p.types("abort")
			if approver == perdure.ApproverToken {
				p.until("abort\r\ntoken: ")
				p.types(match[1])
			}
			if said, status := p.ends(); status != 3 || !strings.Contains(said, "aborted: gate 1") {
				t.Errorf("status %d:\n%s", status, said)
			}
		})
	}
}

// TestSecurityGateTokenShownNowhere: a loop is refused if the token that its gates need is shown nowhere.
func TestSecurityGateTokenShownNowhere(t *testing.T) {
	t.Parallel()
	w := newGatePlace(t, perdure.ApproverToken, "PERDURE_LOOP_NOTIFY_COMMAND=")
	out, errs, status := w.detached(gatedLoop + "'exec:sh " + w.agentFile() + "'")
	wantSaid(t, out+errs, status, 2, "approver is token", "loop.notify.webhook")
}

// TestSecurityWeakeningNeedsTerminal: what weakens the checks of a loop needs a terminal as
// its gates do: marking a false alarm, and resuming with a weaker configuration.
func TestSecurityWeakeningNeedsTerminal(t *testing.T) {
	t.Parallel()
	for _, daemon := range []bool{false, true} {
		w := newGatePlace(t, perdure.ApproverTerminal)
		if daemon {
			w.serve()
		}
		w.opens()
		for _, command := range []string{
			"perdure loop resume --weaker --detection off --no-wait",
			"perdure loop false-alarm reg-001-1 --reason x",
		} {
			out, errs, status := w.detached(command)
			w.refused(out+errs, status, "would weaken the checks of a loop")
		}
		said, status := w.onTerminal("perdure loop false-alarm reg-001-1 --reason x").ends()
		wantSaid(t, said, status, 0, "reg-001-1")
	}
}
