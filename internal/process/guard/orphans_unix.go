//go:build unix

package guard

import "sync"

// ownGuards returns the guards that this process has started and not reaped yet. There is
// one set, because adopting orphans is a property of the process, and a process has one
// list of children.
var ownGuards = sync.OnceValue(func() *guards { return &guards{pids: map[int]int{}} })

// guards is a set of guards. While it has members, this process adopts the orphans among
// its descendants: what a killed guard leaves becomes a child of this process.
type guards struct {
	mu   sync.Mutex  // guards the following
	pids map[int]int // a number that is used again may be there twice for a moment
	open int
	// undo is set if this process did not adopt orphans before.
	undo bool

	// ending is held while orphans are ended, so that only one goroutine waits for a
	// process and no number that it knows is used again.
	ending sync.Mutex
}

// enter makes this process adopt orphans before a guard is started.
func (g *guards) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open++; g.open == 1 {
		g.undo = !adoptsOrphans() && adoptOrphans()
	}
}

// add records a guard before it starts its child.
func (g *guards) add(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pids[pid]++
}

// leave forgets a guard that was reaped; pid is 0 for one that was not started. After the
// last guard this process is as it was before the first.
func (g *guards) leave(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pids[pid]--; g.pids[pid] <= 0 {
		delete(g.pids, pid)
	}
	if g.open--; g.open == 0 && g.undo {
		adoptNoOrphans()
	}
}

func (g *guards) has(pid int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pids[pid] > 0
}

// endOrphans kills what lost guards left, and waits until all of it is gone.
func (g *guards) endOrphans() {
	g.ending.Lock()
	defer g.ending.Unlock()
	endOrphans(g.has)
}
