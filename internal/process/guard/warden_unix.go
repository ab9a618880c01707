//go:build unix

package guard

import (
	"os"
	"syscall"
	"time"
)

// pollInterval is how often the guard checks whether all processes are gone, on systems
// that do not report it.
const pollInterval = 5 * time.Millisecond

// warden is the guard's state of the child and its descendants.
type warden struct {
	pid   int
	grace time.Duration
	// adopted: all descendants are children sooner or later, so that having no
	// child means that none is left.
	adopted bool
	// mainGone: the child was reaped and its number may be used again.
	mainGone bool
	killing  bool
	result   report
	// grant fires when the grace is over, poll at the next check.
	grant, poll <-chan time.Time
}

// watch carries out requests until all processes are gone, and returns how the child
// ended.
func (w *warden) watch(asked <-chan byte, signals <-chan os.Signal, reaped <-chan reaping) report {
	for {
		select {
		case what := <-asked:
			w.obey(what)
		case <-signals:
			w.stop()
		case <-w.grant:
			w.kill()
		case r := <-reaped:
			if w.note(r) {
				return w.result
			}
		case <-w.poll:
			if w.gone() {
				return w.result
			}
		}
	}
}

func (w *warden) obey(what byte) {
	if what == askStop {
		w.stop()
		return
	}
	w.kill()
}

// note records that children ended, and reports whether all processes are gone.
func (w *warden) note(r reaping) bool {
	if r.main {
		w.mainGone = true
		w.result = report{Ended: true, Code: r.status.ExitStatus()}
		if r.status.Signaled() {
			w.result = report{Ended: true, Signal: int(r.status.Signal())}
		}
	}
	if r.none {
		return w.adopted || w.gone()
	}
	switch {
	case w.killing:
		w.signalAll(syscall.SIGKILL) // processes forked or adopted in the meantime
	case r.main && w.grant != nil:
		// A process forked during the first signal may have missed it.
		w.signalAll(syscall.SIGTERM)
	case r.main:
		w.stop() // processes that the child left running
	}
	return false
}

// gone reports whether all processes are gone, on systems that do not report it; if not,
// it schedules the next check.
func (w *warden) gone() bool {
	if len(members(os.Getpid(), w.pid)) == 0 && syscall.Kill(-w.pid, 0) != nil {
		return true
	}
	switch {
	case w.killing:
		w.signalAll(syscall.SIGKILL)
	case w.grant == nil:
		w.stop()
	}
	w.poll = time.After(pollInterval)
	return false
}

// stop sends SIGTERM to all processes and schedules SIGKILL.
func (w *warden) stop() {
	if w.killing || w.grant != nil {
		return
	}
	if w.grace <= 0 {
		w.kill()
		return
	}
	w.grant = time.After(w.grace)
	w.signalAll(syscall.SIGTERM)
	w.signalAll(syscall.SIGCONT) // a stopped process has to wake to end
}

func (w *warden) kill() {
	w.killing = true
	w.grant = nil
	w.signalAll(syscall.SIGKILL)
}

// signalAll signals whole groups, which the system does at once for all
// members, so that a process that keeps forking cannot get ahead.
func (w *warden) signalAll(sig syscall.Signal) {
	self := os.Getpid()
	done := map[int]bool{0: true, 1: true}
	if !w.mainGone || !w.adopted {
		done[w.pid] = true
		_ = syscall.Kill(-w.pid, sig)
	}
	for _, m := range members(self, w.pid) {
		if m.group == self { // it moved into the guard's own group
			_ = syscall.Kill(m.pid, sig)
			continue
		}
		if !done[m.group] {
			done[m.group] = true
			_ = syscall.Kill(-m.group, sig)
		}
	}
}

// process is one line of the system's list of processes.
type process struct {
	pid, parent, group, session int
	zombie                      bool
}
