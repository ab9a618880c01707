package lazyregexp_test

import (
	"testing"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

func TestNew(t *testing.T) {
	t.Parallel()
	re := lazyregexp.New(`^a+$`)
	if first := re(); !first.MatchString("aa") || first != re() {
		t.Errorf("%v, then %v", first, re())
	}
	defer func() {
		if recover() == nil {
			t.Error("an invalid expression does not panic")
		}
	}()
	lazyregexp.New(`(`)()
}
