package sqldb

import (
	"encoding/binary"
	"errors"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite writes each page of its log with two system calls, and ends each transaction
// with an fsync, which also makes the file's times durable. Both cost more than the rest
// of a transaction. The VFS here wraps SQLite's own and changes only that: it appends to
// the log with one write, no later than at the commit, and syncs with fdatasync. The
// content of the files, and when it is durable, stay the same.
//
// The interface is SQLite's (https://sqlite.org/vfs.html). All memory here is
// allocated by SQLite, none on the Go heap, so that addresses stay valid as numbers.

// vfsName is the name of the VFS in SQLite, which keeps it for the process.
const vfsName = "perdure"

// logBuffer is the largest number of log bytes that are collected: as many as SQLite's
// own VFS writes at once.
const logBuffer = 128<<10 - 1

// writeLock is the number of the log's write lock.
const writeLock = 0

// vfs is the VFS: the table that SQLite uses, and xOpen of the wrapped VFS.
type vfs struct {
	table sqlite3.Tsqlite3_vfs
	open  uintptr
}

// file follows SQLite's own part of an open file in memory.
type file struct {
	methods sqlite3.Tsqlite3_io_methods // some replaced
	below   sqlite3.Tsqlite3_io_methods // of the wrapped VFS
	log     uintptr                     // of a database: its open log
	main    uintptr                     // of a log: its database

	buf    uintptr
	n      int
	off    int64 // where in the file buf belongs
	commit bool  // the next page ends a transaction
}

// registerVFS registers the VFS with SQLite once and returns its name: SQLite keeps it
// for the process, and registering writes to the tables of other VFSs.
var registerVFS = sync.OnceValues(addVFS)

func addVFS() (string, error) {
	tls := libc.NewTLS()
	defer tls.Close()
	name, err := libc.CString(vfsName)
	if err != nil {
		return "", err
	}
	below := sqlite3.Xsqlite3_vfs_find(tls, 0)
	own := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(vfs{})))
	if below == 0 || own == 0 {
		return "", errors.New("SQLite has no VFS or no memory")
	}
	v := at[vfs](own)
	v.table = *at[sqlite3.Tsqlite3_vfs](below)
	v.open = v.table.FxOpen
	v.table.FpNext, v.table.FzName = 0, name
	v.table.FszOsFile = (v.table.FszOsFile+7)&^7 + int32(unsafe.Sizeof(file{}))
	v.table.FxOpen = funcOf(openFile)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, own, 0); rc != sqlite3.SQLITE_OK {
		return "", errors.New("SQLite refused the VFS")
	}
	return vfsName, nil
}

// at converts an address in SQLite's memory to a pointer.
func at[T any](addr uintptr) *T { return *(**T)(unsafe.Pointer(&addr)) }

// funcOf returns a function in the form that SQLite stores, and funcAt converts it back.
func funcOf[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func funcAt[F any](addr uintptr) F { return *(*F)(unsafe.Pointer(&addr)) }

// fileOf returns our part of an open file of this VFS.
func fileOf(f uintptr) *file {
	size := at[sqlite3.Tsqlite3_vfs](at[sqlite3.TunixFile](f).FpVfs).FszOsFile
	return at[file](f + uintptr(size) - unsafe.Sizeof(file{})) //nolint:gosec // a size is not negative
}

type (
	openFunc  = func(tls *libc.TLS, v, name, f uintptr, flags int32, out uintptr) int32
	plainFunc = func(tls *libc.TLS, f uintptr) int32
	rwFunc    = func(tls *libc.TLS, f, data uintptr, n int32, off int64) int32
	sizeFunc  = func(tls *libc.TLS, f, out uintptr) int32
	truncFunc = func(tls *libc.TLS, f uintptr, size int64) int32
	syncFunc  = func(tls *libc.TLS, f uintptr, flags int32) int32
	lockFunc  = func(tls *libc.TLS, f uintptr, first, n, flags int32) int32
)

func openFile(tls *libc.TLS, v, name, f uintptr, flags int32, out uintptr) int32 {
	rc := funcAt[openFunc](at[vfs](v).open)(tls, v, name, f, flags, out)
	isLog, isMain := flags&sqlite3.SQLITE_OPEN_WAL != 0, flags&sqlite3.SQLITE_OPEN_MAIN_DB != 0
	if rc != sqlite3.SQLITE_OK || !isLog && !isMain {
		return rc
	}
	methods := &at[sqlite3.TunixFile](f).FpMethod
	own := fileOf(f)
	*own = file{below: *at[sqlite3.Tsqlite3_io_methods](*methods)}
	own.methods = own.below
	own.methods.FxSync = funcOf(syncFile)
	if isMain {
		own.methods.FxShmLock = funcOf(lockMain)
	} else {
		own.main = sqlite3.Xsqlite3_database_file_object(tls, name)
		fileOf(own.main).log = f
		own.methods.FxWrite, own.methods.FxRead = funcOf(writeLog), funcOf(readLog)
		own.methods.FxTruncate, own.methods.FxFileSize = funcOf(truncateLog), funcOf(sizeLog)
		own.methods.FxClose = funcOf(closeLog)
	}
	*methods = uintptr(unsafe.Pointer(own)) // its first field
	return rc
}

// writeLog collects bytes that continue those collected before. After the last page of a
// transaction it writes them, whether or not SQLite syncs the log.
func writeLog(tls *libc.TLS, f, data uintptr, n int32, off int64) int32 {
	own := fileOf(f)
	if own.n > 0 && (off != own.off+int64(own.n) || own.n+int(n) > logBuffer) {
		if rc := own.flush(tls, f); rc != sqlite3.SQLITE_OK {
			return rc
		}
	}
	if own.buf == 0 {
		own.buf = libc.Xmalloc(tls, logBuffer)
	}
	if own.buf == 0 || n > logBuffer {
		return funcAt[rwFunc](own.below.FxWrite)(tls, f, data, n, off)
	}
	if own.n == 0 {
		own.off = off
	}
	src := unsafe.Slice(at[byte](data), n)
	copy(unsafe.Slice(at[byte](own.buf+uintptr(own.n)), n), src)
	own.n += int(n)
	if n == walFrameHeader { // of a commit it contains the size of the database
		own.commit = binary.BigEndian.Uint32(src[4:]) != 0
		return sqlite3.SQLITE_OK
	}
	if own.commit {
		return own.flush(tls, f)
	}
	return sqlite3.SQLITE_OK
}

// flush writes the collected bytes. After an error they are dropped: the transaction
// fails then and its pages are written again.
func (own *file) flush(tls *libc.TLS, f uintptr) int32 {
	n := own.n
	own.n, own.commit = 0, false
	if n == 0 {
		return sqlite3.SQLITE_OK
	}
	return funcAt[rwFunc](own.below.FxWrite)(tls, f, own.buf, int32(n), own.off) //nolint:gosec // at most logBuffer
}

func readLog(tls *libc.TLS, f, data uintptr, n int32, off int64) int32 {
	own := fileOf(f)
	if rc := own.flush(tls, f); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return funcAt[rwFunc](own.below.FxRead)(tls, f, data, n, off)
}

func truncateLog(tls *libc.TLS, f uintptr, size int64) int32 {
	own := fileOf(f)
	if rc := own.flush(tls, f); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return funcAt[truncFunc](own.below.FxTruncate)(tls, f, size)
}

func sizeLog(tls *libc.TLS, f, out uintptr) int32 {
	own := fileOf(f)
	if rc := own.flush(tls, f); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return funcAt[sizeFunc](own.below.FxFileSize)(tls, f, out)
}

func closeLog(tls *libc.TLS, f uintptr) int32 {
	own := fileOf(f)
	fileOf(own.main).log = 0
	libc.Xfree(tls, own.buf)
	own.buf, own.n = 0, 0
	return funcAt[plainFunc](own.below.FxClose)(tls, f)
}

// lockMain drops the collected bytes when the log's write lock is released: they belong to
// a transaction that was rolled back, and another process may write at their place.
func lockMain(tls *libc.TLS, f uintptr, first, n, flags int32) int32 {
	own := fileOf(f)
	if own.log != 0 && first == writeLock && flags&sqlite3.SQLITE_SHM_UNLOCK != 0 {
		log := fileOf(own.log)
		log.n, log.commit = 0, false
	}
	return funcAt[lockFunc](own.below.FxShmLock)(tls, f, first, n, flags)
}

// syncFile makes a file's content and size durable. The first sync of a new
// file is the wrapped VFS's, which makes its name durable too.
func syncFile(tls *libc.TLS, f uintptr, flags int32) int32 {
	own, inner := fileOf(f), at[sqlite3.TunixFile](f)
	if rc := own.flush(tls, f); rc != sqlite3.SQLITE_OK {
		return rc
	}
	if int(inner.FctrlFlags)&sqlite3.UNIXFILE_DIRSYNC != 0 {
		return funcAt[syncFunc](own.below.FxSync)(tls, f, flags)
	}
	for {
		err := unix.Fdatasync(int(inner.Fh))
		if err == nil {
			return sqlite3.SQLITE_OK
		}
		if !errors.Is(err, unix.EINTR) {
			return sqlite3.SQLITE_IOERR_FSYNC
		}
	}
}
