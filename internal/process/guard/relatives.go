//go:build linux || darwin

package guard

// relatives picks from a list of all processes those that still run and belong
// to the child: descendants of the guard, members of its session, members of
// the child's group. The guard itself is not among them.
func relatives(all []process, guard, child int) []process {
	ours := map[int]bool{guard: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !ours[p.pid] && (ours[p.parent] || p.session == guard || p.group == child) {
				ours[p.pid], grown = true, true
			}
		}
	}
	var found []process
	for _, p := range all {
		if ours[p.pid] && p.pid != guard && !p.zombie {
			found = append(found, p)
		}
	}
	return found
}
