package perdure

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

func TestWrapTellsWhatIsTheMatter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code Code
		text string
		msg  string
	}{
		{fmt.Errorf("commit: %w: no room", sqldb.ErrFull), CodeUnavailable, "write: commit: disk is full: no room",
			"disk is full"},
		{&fs.PathError{Op: "open", Path: "sessions/write.next", Err: fs.ErrPermission}, CodeUnavailable,
			"write: store is read-only: open sessions/write.next: permission denied", "store is read-only"},
		{fmt.Errorf("%w: page 7", sqldb.ErrDamaged), CodeDamaged, "write: database is damaged: page 7",
			"database is damaged"},
		{fmt.Errorf("%w: dial", sqldb.ErrUnreachable), CodeUnavailable, "write: database cannot be reached: dial",
			"database cannot be reached"},
		{fmt.Errorf("%w: write", sqldb.ErrIO), CodeUnavailable, "write: disk failed: write", "disk failed"},
		{errors.New("no such table"), CodeInternal, "write: no such table", ""},
	} {
		err := wrap("write", c.err)
		var own *Error
		if !errors.As(err, &own) || own.Code != c.code || own.Msg != c.msg || err.Error() != c.text {
			t.Errorf("wrap(%v) is %s %q, message %q; want %s %q, message %q", c.err, CodeOf(err), err, own.Msg, c.code, c.text,
				c.msg)
		}
		if (own.Hint == "") != (c.code == CodeInternal) {
			t.Errorf("wrap(%v) has hint %q", c.err, own.Hint)
		}
	}
}
