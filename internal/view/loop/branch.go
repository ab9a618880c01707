package loop

import "github.com/perdure/perdure/internal/loop/branch"

// branch names the branch of the loop with its last commit; empty if it has none.
func (s *Summary) branch() string {
	at := s.standing.Branch
	if at == nil || at.Head == "" {
		return ""
	}
	return oneLine(at.Branch+" at "+branch.Short(at.Head), maxName)
}
