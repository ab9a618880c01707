package ledger

import (
	"bytes"
	"encoding/gob"

	"github.com/perdure/perdure/handoff"
)

// SnapshotEvery is snapshotEvery.
const SnapshotEvery = snapshotEvery

// EncodeLedger writes a ledger as in a snapshot.
func EncodeLedger(l *handoff.Ledger) ([]byte, error) {
	var out bytes.Buffer
	err := gob.NewEncoder(&out).Encode(&kept{Ledger: *l})
	return out.Bytes(), err
}

// DecodeLedger reads a ledger as in a snapshot, and reports whether it is valid.
func DecodeLedger(raw []byte) (handoff.Ledger, bool) {
	var k kept
	err := gob.NewDecoder(bytes.NewReader(raw)).Decode(&k)
	return k.Ledger, err == nil
}
