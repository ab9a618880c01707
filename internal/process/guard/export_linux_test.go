package guard

// Internals for tests.

// ParseStat reads a line of /proc/PID/stat into its numbers.
func ParseStat(pid int, stat []byte) (parent, group, session int, zombie, ok bool) {
	p, ok := parseStat(pid, stat)
	return p.parent, p.group, p.session, p.zombie, ok
}

// Relatives picks those that belong to the child from lists of five numbers:
// process, parent, group, session, and 1 for a zombie.
func Relatives(all [][5]int, guard, child int) []int {
	list := make([]process, len(all))
	for i, p := range all {
		list[i] = process{pid: p[0], parent: p[1], group: p[2], session: p[3], zombie: p[4] == 1}
	}
	var pids []int
	for _, p := range relatives(list, guard, child) {
		pids = append(pids, p.pid)
	}
	return pids
}

// Listed returns the numbers of the processes found by a walk through the
// children of a process, and in the list of all processes.
func Listed(guard int) (walked, listed []int) {
	for _, p := range members(guard, -1) {
		walked = append(walked, p.pid)
	}
	for _, p := range relatives(processes(), guard, -1) {
		listed = append(listed, p.pid)
	}
	return walked, listed
}

// ParseLocksLimit reads /proc/PID/limits.
func ParseLocksLimit(text string) (hard uint64, ok bool) { return parseLocksLimit(text) }
