package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/internal/storage/userdir/copies"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/rlm"
)

// diagnosis is a line of the doctor's report.
type diagnosis struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// doctorReport is the output of doctor --json.
type doctorReport struct {
	OK     bool        `json:"ok"`
	Checks []diagnosis `json:"checks"`
}

func (a *app) newDoctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check store, disk, locks, settings, model, REPL and agents",
		Long: "Check the integrity of the store, the disk and its file system, locks, socket, settings, and whether the " +
			"model is configured; say what confines the code of planner repl. For each coding agent, print its " +
			"program, its version, and whether the hook of `perdure install` is active: in this project, for the " +
			"user, not trusted, or none. doctor changes nothing and sends no request. The exit status is 1 if a " +
			"check fails.",
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := doctorReport{OK: true, Checks: a.examine(cmd)}
			for _, c := range r.Checks {
				r.OK = r.OK && c.OK
			}
			err := a.Print(r, func() { a.printReport(r) })
			if err == nil && !r.OK {
				return &env.Exit{Status: env.StatusFailed}
			}
			return err
		},
	}
	env.SettingFlags(cmd, "model", "base_url")
	a.JSONFlag(cmd)
	return cmd
}

func (a *app) printReport(r doctorReport) {
	for _, c := range r.Checks {
		state := a.Out.Mark(perdure.Completed)
		if !c.OK {
			state = a.Out.Mark(perdure.Failed)
		}
		a.Printf("%s %s %s\n", state, env.Pad(c.Name, 11),
			strings.ReplaceAll(human.Visible(c.Detail), "\n", "\n"+strings.Repeat(" ", 14)))
	}
}

func (a *app) examine(cmd *cobra.Command) []diagnosis {
	b := env.ThisBuild()
	checks := []diagnosis{{Name: "version", OK: true,
		Detail: fmt.Sprintf("perdure %s, %s, %s", b.Version, b.Go, b.System)}}
	l, err := a.Load(cmd)
	if err != nil {
		return append(checks, failedCheck("settings", err))
	}
	settings := diagnosis{Name: "settings", OK: true, Detail: cmp.Or(l.File, "built-in defaults")}
	checks = append(checks, settings, checkFolder(l))
	if l.Exists {
		checks = append(checks, a.checkTrust(cmd))
		checks = append(checks, checkDisk(l.Dir, copies.Root(a.Getenv)), checkDaemon(cmd.Context(), l), checkLocks(l.Dir))
	}
	if env.HasStore(l) {
		checks = append(checks, a.checkStore(cmd.Context(), l), a.checkLog(cmd.Context(), l))
	} else {
		checks = append(checks, diagnosis{Name: "store", OK: true, Detail: "none; the first run creates it"})
	}
	checks = append(checks, a.checkModel(l), checkRepl(cmd.Context(), l))
	return append(checks, a.checkAgents(cmd.Context())...)
}

func failedCheck(name string, err error) diagnosis {
	detail := err.Error()
	if hint := perdure.HintOf(err); hint != "" {
		detail += "\nhint: " + hint
	}
	return diagnosis{Name: name, Detail: detail}
}

func checkFolder(l *config.Loaded) diagnosis {
	c := diagnosis{Name: "folder", OK: true, Detail: l.Dir}
	if !l.Exists {
		c.Detail += " (not created yet)"
		return c
	}
	probe, err := os.CreateTemp(l.Dir, ".doctor-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return failedCheck(c.Name, unwritable(err))
	}
	return c
}

// checkTrust reports what in the folder acts only after the user trusts it.
func (a *app) checkTrust(cmd *cobra.Command) diagnosis {
	c := diagnosis{Name: "trust", OK: true, Detail: "nothing here needs trust that it does not have"}
	l, err := a.LoadUntrusted(cmd, a.Cwd)
	if err != nil {
		return failedCheck(c.Name, err)
	}
	u, err := a.Untrusted(cmd.Context(), l, true)
	if err != nil {
		return failedCheck(c.Name, err)
	}
	if n, trees := len(u.Settings), u.TreeCount; n+trees > 0 {
		c.Detail = fmt.Sprintf("not trusted: %s and %s; `perdure trust --show` lists what they do", human.Count(n, "setting"),
			human.Count(trees, "stored tree"))
	}
	return c
}

// leastFree is the free space below which the check fails.
const leastFree = 256 << 20

// checkDisk reports the free space, and what the copies of loops take in the folder kept.
func checkDisk(dir, kept string) diagnosis {
	kind, free, err := diskOf(dir)
	if err != nil {
		return failedCheck("disk", err)
	}
	c := diagnosis{Name: "disk", OK: free >= leastFree, Detail: human.Size(free) + " free"}
	if kind != "" {
		c.Detail += ", " + kind
	}
	if !c.OK {
		c.Detail += "; free some space: runs fail when the disk is full"
	}
	if size := copies.Size(kept); size > 0 {
		c.Detail += fmt.Sprintf("; copies of stores take %s in %s", human.Size(size), kept)
	}
	return c
}

func checkDaemon(ctx context.Context, l *config.Loaded) diagnosis {
	c := diagnosis{Name: "daemon", OK: true, Detail: "not running"}
	socket := env.SocketPath(l)
	if _, err := os.Stat(socket); err != nil {
		return c
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", socket)
	if err != nil {
		c.Detail = fmt.Sprintf("not running; %s is left from a killed one, `perdure serve` replaces it", socket)
		return c
	}
	_ = conn.Close()
	client, err := env.Dial(ctx, socket)
	if err != nil {
		return failedCheck(c.Name, err)
	}
	defer client.Close()
	v, err := client.Version(ctx)
	if err != nil {
		return failedCheck(c.Name, err)
	}
	c.Detail = "listens on " + socket
	if own := env.ThisBuild().Version; v.Version != own {
		c.Detail += fmt.Sprintf(", version %s; this program is version %s: restart the daemon", v.Version, own)
	}
	return c
}

// checkLocks counts the session files. Those of running processes are locked; the others
// are left from killed processes.
func checkLocks(dir string) diagnosis {
	c := diagnosis{Name: "sessions", OK: true}
	files, err := filepath.Glob(filepath.Join(dir, "sessions", "sess-*"))
	if err != nil {
		return failedCheck(c.Name, err)
	}
	alive, dead := 0, 0
	for _, name := range files {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue // the session just ended
		}
		if err := filelock.TryLock(f); errors.Is(err, filelock.ErrLocked) {
			alive++
		} else {
			dead++
		}
		_ = f.Close()
	}
	c.Detail = fmt.Sprintf("%d running", alive)
	if dead > 0 {
		c.Detail += fmt.Sprintf(", %d left from killed processes; `perdure resume` continues their trees, `perdure gc` "+
			"removes their files", dead)
	}
	return c
}

// shownProblems bounds the number of problems that are listed.
const shownProblems = 10

func (a *app) checkStore(ctx context.Context, l *config.Loaded) diagnosis {
	c := diagnosis{Name: "store", Detail: "sound"}
	store, err := perdure.Open(ctx, perdure.Config{Dir: l.Dir, DSN: l.Store})
	if err != nil {
		return failedCheck(c.Name, err)
	}
	problems, err := store.Check(ctx)
	if err = errors.Join(err, store.Close()); err != nil {
		return failedCheck(c.Name, err)
	}
	c.OK = len(problems) == 0
	if c.OK {
		c.Detail += ", " + store.Database()
		return c
	}
	lines := []string{human.Count(len(problems), "problem")}
	for _, p := range problems[:min(len(problems), shownProblems)] {
		lines = append(lines, p.Kind+": "+p.Detail)
	}
	if len(problems) > shownProblems {
		lines = append(lines, "…")
	}
	c.Detail = strings.Join(lines, "\n")
	return c
}

// checkLog does what `perdure verify-log` does, in one line.
func (a *app) checkLog(ctx context.Context, l *config.Loaded) diagnosis {
	c := diagnosis{Name: "log"}
	err := a.WithStore(ctx, l, false, func(s *perdure.Store) error {
		r, err := s.VerifyLog(ctx)
		if err != nil {
			return err
		}
		bad := 0
		for _, t := range r.Trees {
			if !t.Intact {
				bad++
			}
		}
		c.OK, c.Detail = r.Intact, "intact, "+human.Count(len(r.Trees), "chain")
		if !r.Intact {
			c.Detail = human.Count(bad, "chain") + " changed; `perdure verify-log` names the events"
		}
		return nil
	})
	if err != nil {
		return failedCheck(c.Name, err)
	}
	return c
}

// checkRepl reports what would confine the code of a REPL. It never fails: most runs have none.
func checkRepl(ctx context.Context, l *config.Loaded) diagnosis {
	c := diagnosis{Name: "repl", OK: true}
	layers, checks, err := rlm.ReplSandbox(ctx, l.ReplPython)
	if err == nil {
		c.Detail = describeRepl(l.ReplPython, layers, checks)
		return c
	}
	c.Detail = "not available: " + err.Error()
	if hint := perdure.HintOf(err); hint != "" {
		c.Detail += "\nhint: " + hint
	}
	return c
}

// describeRepl returns what confines the code of a REPL, and what was tried and refused.
func describeRepl(program string, layers, checks []string) string {
	text := fmt.Sprintf("%s, confined by %s\nchecked: it cannot %s", program, strings.Join(layers, ", "),
		strings.Join(checks, ", "))
	if slices.Contains(layers, sandbox.LayerSandboxExec) {
		text += "\nexperimental: written and type-checked for macOS, not tried there; memory is watched and not limited"
	}
	return text
}

func (a *app) checkModel(l *config.Loaded) diagnosis {
	models := daemon.NewModels(a.DaemonConfig(l).Models)
	if _, err := models.Resolve(l.Model, rlm.ModelOptions{BaseURL: a.baseURL(l)}); err != nil {
		return failedCheck("model", err)
	}
	return diagnosis{Name: "model", OK: true, Detail: l.Model}
}
