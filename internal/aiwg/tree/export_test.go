package tree

// ParseForTest parses a text and returns how much of it there is, and where it
// stops being JSON, -1 when it does not.
func ParseForTest(text []byte) (members, off int) {
	n, err := parse(text)
	off = -1
	if err != nil {
		off = err.off
	}
	var count func(n *node) int
	count = func(n *node) int {
		all := 1
		for _, v := range n.vals {
			all += count(v)
		}
		return all
	}
	if n == nil {
		return 0, off
	}
	return count(n), off
}
