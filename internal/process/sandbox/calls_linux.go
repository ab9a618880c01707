package sandbox

import (
	"slices"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// filterCalls lets this thread, and what it executes, make only system calls that ordinary
// programs need for files, memory, time and processes of their own. Others fail with EPERM, and
// those of another architecture too.
func filterCalls() error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	allowed := slices.DeleteFunc(allowedCalls(), func(name string) bool {
		_, there := info.SyscallNames[name]
		return !there // on this architecture
	})
	return seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno,
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionAllow, Names: allowed, NamesWithCondtions: conditionalCalls()},
			// Its flags are in memory, where a filter does not see them. C libraries then use clone.
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
		}}})
}

// conditionalCalls are allowed with some arguments only: no namespaces, no limits of other
// processes, no sockets but pairs, and the address space of an ordinary program.
func conditionalCalls() []seccomp.NameWithConditions {
	const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME
	const ask = 0xffffffff // personality(2) only answers
	one := func(name string, argument uint32, op seccomp.Operation, value uint64) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{
			{Argument: argument, Operation: op, Value: value}}}
	}
	return []seccomp.NameWithConditions{
		one("clone", 0, seccomp.BitsNotSet, namespaces),
		one("prlimit64", 0, seccomp.Equal, 0),
		one("socketpair", 0, seccomp.Equal, unix.AF_UNIX),
		one("sendto", 4, seccomp.Equal, 0), // without an address
		one("personality", 0, seccomp.Equal, ask),
	}
}

// allowedCalls are the names of the system calls that are always allowed, on all
// architectures.
func allowedCalls() []string {
	return slices.Concat([]string{ // files
		"access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3",
		"faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown",
		"fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock", "fstat", "fstatfs", "fsync", "ftruncate",
		"futimesat", "getcwd", "getdents", "getdents64", "getxattr", "inotify_add_watch", "inotify_init",
		"inotify_init1", "inotify_rm_watch", "ioctl", "lchown", "lgetxattr", "link", "linkat", "listxattr",
		"llistxattr", "lseek", "lstat", "mkdir", "mkdirat", "mknod", "mknodat", "newfstatat", "open", "openat",
		"openat2", "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read",
		"readahead", "readlink", "readlinkat", "readv", "rename", "renameat", "renameat2", "rmdir", "sendfile",
		"splice", "stat", "statfs", "statx", "symlink", "symlinkat", "sync_file_range", "tee", "truncate", "umask",
		"unlink", "unlinkat", "utime", "utimensat", "utimes", "write", "writev",
	}, []string{ // memory
		"brk", "cachestat", "get_mempolicy", "madvise", "membarrier", "mincore", "mlock", "mlock2",
		"mlockall", "mmap", "mprotect", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap", "pkey_alloc",
		"pkey_free", "pkey_mprotect", "map_shadow_stack",
	}, []string{ // processes, threads and signals
		"arch_prctl", "capget", "execve", "execveat", "exit", "exit_group", "fork", "futex", "futex_requeue",
		"futex_wait", "futex_waitv", "futex_wake", "get_robust_list", "getcpu", "getegid", "geteuid", "getgid",
		"getgroups", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresuid", "getrlimit",
		"getrusage", "getsid", "gettid", "getuid", "kill", "pause", "pidfd_open", "pidfd_send_signal", "prctl",
		"restart_syscall", "riscv_flush_icache", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
		"rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
		"sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
		"sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_yield", "set_robust_list",
		"set_tid_address", "setpgid", "setpriority", "setrlimit", "setsid", "sigaltstack", "signalfd", "signalfd4",
		"sysinfo", "tgkill", "times", "tkill", "uname", "vfork", "wait4", "waitid",
	}, []string{ // time, events and random numbers
		"alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "epoll_create", "epoll_create1", "epoll_ctl",
		"epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd", "eventfd2", "getitimer", "getrandom", "gettimeofday",
		"nanosleep", "poll", "ppoll", "pselect6", "select", "setitimer", "time", "timer_create", "timer_delete",
		"timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create", "timerfd_gettime", "timerfd_settime",
	}, []string{ // pairs of sockets
		"getpeername", "getsockname", "getsockopt", "recvfrom", "recvmmsg", "recvmsg", "setsockopt", "shutdown",
	})
}
