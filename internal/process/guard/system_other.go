//go:build unix && !linux && !darwin

package guard

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func adoptOrphans() bool { return false }

func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dup2(from, to int) error { return unix.Dup2(from, to) }

// members returns nothing, because there is no portable list; the child's group is
// signalled as a whole.
func members(_, _ int) []process { return nil }
