package guard

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of descendants whose parent ends.
func adoptOrphans() bool {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func dup2(from, to int) error { return unix.Dup3(from, to, 0) }

// members returns the running processes that belong to the child. It walks the guard's
// own subtree, because the list of all processes can be long and a process that forks
// could escape it.
func members(guard, child int) []process {
	pids, ok := children(guard)
	if !ok { // a kernel without CONFIG_PROC_CHILDREN
		return relatives(processes(), guard, child)
	}
	return running(walk(pids))
}

// walk returns processes and their descendants.
func walk(pids []int) []process {
	var found []process
	for todo := pids; len(todo) > 0; {
		pid := todo[0]
		more, _ := children(pid)
		todo = append(todo[1:], more...)
		if p, ok := readStat(pid); ok {
			found = append(found, p)
		}
	}
	return found
}

// running leaves out zombies.
func running(all []process) []process {
	return slices.DeleteFunc(all, func(p process) bool { return p.zombie })
}

// children lists the children of a process. ok is false if the kernel does not provide
// them.
func children(pid int) (list []int, ok bool) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	for _, thread := range numbers(tasks) {
		text, err := os.ReadFile(tasks + "/" + strconv.Itoa(thread) + "/children")
		if err != nil {
			continue
		}
		ok = true
		for _, field := range bytes.Fields(text) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				list = append(list, child)
			}
		}
	}
	return list, ok
}

// processes lists all processes. One that ends meanwhile is left out.
func processes() []process {
	var all []process
	for _, pid := range numbers("/proc") {
		if p, ok := readStat(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// numbers returns the entries of a folder whose names are numbers.
func numbers(folder string) []int {
	dir, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var list []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			list = append(list, n)
		}
	}
	return list
}

func readStat(pid int) (process, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, stat)
}

// parseStat reads "pid (name) state ppid pgrp session …". The name may hold
// anything, also parentheses.
func parseStat(pid int, stat []byte) (process, bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return process{}, false
	}
	const threads = 17
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 4 {
		return process{}, false
	}
	// A process whose first thread has ended is shown as a zombie while others run.
	alive := len(fields) > threads && !slices.Contains([]string{"0", "1"}, string(fields[threads]))
	p := process{pid: pid, zombie: (fields[0][0] == 'Z' || fields[0][0] == 'X') && !alive}
	for i, to := range []*int{&p.parent, &p.group, &p.session} {
		n, err := strconv.Atoi(string(fields[i+1]))
		if err != nil {
			return process{}, false
		}
		*to = n
	}
	return p, true
}
