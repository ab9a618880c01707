package ledger

import (
	"reflect"

	"github.com/perdure/perdure/handoff"
)

// SnapshotEvery is snapshotEvery.
const SnapshotEvery = snapshotEvery

// EncodeLedger writes a ledger as in a snapshot.
func EncodeLedger(l *handoff.Ledger) ([]byte, error) { return encode(nil, reflect.ValueOf(l).Elem()) }

// DecodeLedger reads a ledger as in a snapshot, and tells whether all was well.
func DecodeLedger(raw []byte) (l handoff.Ledger, ok bool) {
	d := &decoder{rest: raw}
	d.value(reflect.ValueOf(&l).Elem())
	return l, !d.failed && len(d.rest) == 0
}
