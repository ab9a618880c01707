package testdb

import "syscall"

// memoryFolder returns a folder in memory, and "" if it has no room for the
// databases of a test process.
func memoryFolder() string {
	const dir, room = "/dev/shm", 1 << 30
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil || uint64(fs.Bsize)*fs.Bavail < room {
		return ""
	}
	return dir
}
