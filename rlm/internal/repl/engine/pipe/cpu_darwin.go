package pipe

import (
	"encoding/binary"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watchEvery is short, because the process has no limit of memory of its own.
const watchEvery = 50 * time.Millisecond

// processorTime returns the processor time that a process has used, 0 if it is not known. It is
// counted in nanoseconds by processors of Intel, and 24 million times a second by those of Apple.
func processorTime(pid int) time.Duration {
	const user, system = 16, 24 // the places of ri_user_time and ri_system_time
	raw := resources(pid)
	if raw == nil {
		return 0
	}
	used := binary.LittleEndian.Uint64(raw[user:]) + binary.LittleEndian.Uint64(raw[system:])
	if runtime.GOARCH == "arm64" {
		used = used * 125 / 3
	}
	return time.Duration(used) //nolint:gosec // below 292 years
}

// memoryOf returns the memory that a process uses, also if it is compressed; 0 if it is not known.
func memoryOf(pid int) int64 {
	const footprint = 72 // the place of ri_phys_footprint
	raw := resources(pid)
	if raw == nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(raw[footprint:])) //nolint:gosec // below 2^63 bytes
}

// resources returns the struct rusage_info_v0 of a process, nil if there is none. See
// proc_pid_rusage(3), which is in no package of Go.
func resources(pid int) []byte {
	const call, version, size = 9, 0, 96 // PROC_INFO_CALL_PIDRUSAGE, RUSAGE_INFO_V0
	raw := make([]byte, 2*size)          // more than the system fills in
	_, _, errno := syscall.Syscall6(unix.SYS_PROC_INFO, call, uintptr(pid), version, 0,
		uintptr(unsafe.Pointer(&raw[0])), 0)
	if errno != 0 {
		return nil
	}
	return raw[:size]
}

// processesBeside returns -1: no limit, because all processes of the user would count.
func processesBeside(int) int { return -1 }
