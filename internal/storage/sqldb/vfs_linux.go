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

// SQLite asks for two writes a page of its log, and its Linux files end each
// transaction with an fsync, which also makes the file's times durable. Both
// cost more than the work in between. The file system layer here stands before
// SQLite's own one and changes just that: what is appended to the log goes to
// the kernel in one write, no later than with its commit, and a sync is an
// fdatasync. What is in the files, and when it is durable, stays as it was.
//
// The interface is SQLite's (https://sqlite.org/vfs.html). All memory here is
// SQLite's, none is the Go heap's: its addresses are numbers that nothing moves.

// vfsName is the layer's name in SQLite, which keeps it for the process.
const vfsName = "perdure"

// logBuffer is how many bytes of the log are collected at most: as many as
// SQLite's Linux files take in one write.
const logBuffer = 128<<10 - 1

// writeLock is the number of the log's write lock.
const writeLock = 0

// vfs is our layer: the table SQLite knows, and the function below xOpen.
type vfs struct {
	table sqlite3.Tsqlite3_vfs
	open  uintptr
}

// file is what follows SQLite's own part of an open file.
type file struct {
	methods sqlite3.Tsqlite3_io_methods // with ours in the place of some
	below   sqlite3.Tsqlite3_io_methods
	log     uintptr // of a database: its open log
	main    uintptr // of a log: its database

	buf    uintptr
	n      int
	off    int64 // where in the file buf belongs
	commit bool  // the next page ends a transaction
}

// registerVFS makes the layer known to SQLite and returns its name. It may be
// called any number of times, by anybody: SQLite keeps layers for the process,
// and registering one writes to the others' tables, so that it happens once.
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
		return "", errors.New("SQLite has no file system layer, or no memory")
	}
	v := at[vfs](own)
	v.table = *at[sqlite3.Tsqlite3_vfs](below)
	v.open = v.table.FxOpen
	v.table.FpNext, v.table.FzName = 0, name
	v.table.FszOsFile = (v.table.FszOsFile+7)&^7 + int32(unsafe.Sizeof(file{}))
	v.table.FxOpen = funcOf(openFile)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, own, 0); rc != sqlite3.SQLITE_OK {
		return "", errors.New("SQLite refused the file system layer")
	}
	return vfsName, nil
}

// at reads an address of SQLite's memory as what is there.
func at[T any](addr uintptr) *T { return *(**T)(unsafe.Pointer(&addr)) }

// funcOf returns a function as SQLite stores one, and funcAt reads it again.
func funcOf[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

func funcAt[F any](addr uintptr) F { return *(*F)(unsafe.Pointer(&addr)) }

// fileOf finds our part of an open file. Only files of this layer come here.
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

// writeLog collects what continues the bytes collected so far. The last page of
// a transaction is not kept back, whatever SQLite does about syncing it.
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
	if n == walFrameHeader { // it holds the size of the database after a commit
		own.commit = binary.BigEndian.Uint32(src[4:]) != 0
		return sqlite3.SQLITE_OK
	}
	if own.commit {
		return own.flush(tls, f)
	}
	return sqlite3.SQLITE_OK
}

// flush gives the collected bytes to the kernel. They are forgotten when it
// refuses them: the transaction fails then and its pages are written anew.
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

// lockMain sees the log's write lock go. What is still collected then belongs
// to a transaction that was rolled back, and its place may be another
// process's at once.
func lockMain(tls *libc.TLS, f uintptr, first, n, flags int32) int32 {
	own := fileOf(f)
	if own.log != 0 && first == writeLock && flags&sqlite3.SQLITE_SHM_UNLOCK != 0 {
		log := fileOf(own.log)
		log.n, log.commit = 0, false
	}
	return funcAt[lockFunc](own.below.FxShmLock)(tls, f, first, n, flags)
}

// syncFile makes a file's content and size durable. The first sync of a new
// file is SQLite's, which makes its name durable too.
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
