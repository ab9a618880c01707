package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/perdure/perdure/handoff"
)

// A snapshot is what the first entries of a ledger fold to, kept in a file so
// that a command need not read thousands of them. It only saves time: without
// the file, or with one that is not whole, of another program or of other
// entries, all entries are read. Nothing waits for the disk.

// snapshotEvery is how many entries are folded again at most before a snapshot
// is made of them.
const snapshotEvery = 32

// kept is what a snapshot holds.
type kept struct {
	Handoff int64
	Version int64
	// Source and Time are those of the last entry: that one has to be the same.
	Source, Kind string
	Time         int64
	Ledger       handoff.Ledger
}

func (k *kept) of(e *Entry) bool {
	return k.Version == e.Number && k.Source == e.Source && k.Kind == e.Kind && k.Time == e.Time.UnixMicro()
}

func (r *Recorder) snapshotFile(id ID) string {
	return filepath.Join(r.Snapshots, id.String()+".fold")
}

// fold makes the ledger of its entries, beginning with a snapshot if there is one.
func (r *Recorder) fold(ctx context.Context, v *View, from *kept) error {
	v.folder = r.newFolder(v)
	after, read := int64(0), 0
	if from != nil {
		after = from.Version - 1 // its last entry is read to see that it is the same
		v.folder.begin(from.Ledger)
	}
	var last Entry
	err := r.each(ctx, v, after, func(e *Entry) error {
		last = *e
		if read++; from == nil || read > 1 {
			return v.folder.entry(e)
		}
		if !from.of(e) {
			return errOther
		}
		return nil
	})
	if errors.Is(err, errOther) {
		return r.fold(ctx, v, nil)
	}
	if err == nil && read > snapshotEvery {
		r.keep(v, &last)
	}
	v.folder.notes = nil
	return err
}

var errOther = errors.New("a snapshot of other entries")

// restore returns the snapshot of the ledger; nil when there is none that can be
// used.
func (r *Recorder) restore(v *View) *kept {
	if r.Snapshots == "" || v.Handoff.Version < snapshotEvery {
		return nil
	}
	raw, err := os.ReadFile(r.snapshotFile(v.Handoff.ID))
	if err != nil {
		return nil
	}
	var k kept
	if !unpack(raw, r.fingerprint(v), &k) || k.Handoff != int64(v.Handoff.ID) || k.Version > v.Handoff.Version ||
		k.Version < 1 {
		return nil
	}
	return &k
}

// keep makes a snapshot of what the entries up to the last one folded to.
func (r *Recorder) keep(v *View, last *Entry) {
	if r.Snapshots == "" {
		return
	}
	raw, err := pack(r.fingerprint(v), &kept{Handoff: int64(v.Handoff.ID), Version: last.Number, Source: last.Source,
		Kind: last.Kind,
		Time: last.Time.UnixMicro(), Ledger: v.folder.Ledger})
	if err != nil || os.MkdirAll(r.Snapshots, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(r.Snapshots, ".fold")
	if err != nil {
		return
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), r.snapshotFile(v.Handoff.ID))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the next one may
	}
}

// fingerprint differs where the same entries would fold to another ledger: for
// another task or by another program. A change of what an op does to a ledger
// raises the number in it.
func (r *Recorder) fingerprint(v *View) []byte {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "1 %q %q %q\n", v.Task.ID, r.Place, v.Task.Description)
	describe(h, reflect.TypeFor[kept]())
	return h.Sum(nil)
}

func describe(w interface{ Write(p []byte) (int, error) }, t reflect.Type) {
	_, _ = fmt.Fprintf(w, "%s %s;", t.String(), t.Kind())
	switch t.Kind() { //nolint:exhaustive // the others have no parts
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				_, _ = fmt.Fprintf(w, "%s:", f.Name)
				describe(w, f.Type)
			}
		}
	case reflect.Slice, reflect.Pointer, reflect.Map:
		describe(w, t.Elem())
	}
}

// pack writes a snapshot: its hash, the fingerprint, the content.
func pack(mark []byte, k *kept) ([]byte, error) {
	body, err := encode(slices.Clone(mark), reflect.ValueOf(k).Elem())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	return append(sum[:], body...), nil
}

func unpack(raw, mark []byte, k *kept) bool {
	if len(raw) < 2*sha256.Size {
		return false
	}
	body := raw[sha256.Size:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], raw[:sha256.Size]) || !bytes.Equal(body[:sha256.Size], mark) {
		return false
	}
	d := &decoder{rest: body[sha256.Size:]}
	d.value(reflect.ValueOf(k).Elem())
	return !d.failed && len(d.rest) == 0
}

var errNoForm = errors.New("a type without a form in snapshots")

// encode appends a value: numbers as varints, a length before strings, lists and
// maps, 0 for nil and one more than the length otherwise.
func encode(b []byte, v reflect.Value) ([]byte, error) {
	var err error
	switch v.Kind() {
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...), nil //nolint:gosec // no length is negative
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(b, v.Int()), nil
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0), nil
		}
		return encode(append(b, 1), v.Elem())
	case reflect.Struct:
		return encodeStruct(b, v)
	case reflect.Slice, reflect.Map:
		if v.IsNil() {
			return append(b, 0), nil
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1) //nolint:gosec // no length is negative
	default:
		return nil, errNoForm
	}
	if v.Kind() == reflect.Map {
		return encodeMap(b, v)
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return append(b, v.Bytes()...), nil
	}
	for i := range v.Len() {
		if b, err = encode(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func encodeStruct(b []byte, v reflect.Value) ([]byte, error) {
	if at, is := v.Interface().(time.Time); is {
		raw, err := at.MarshalBinary()
		return append(binary.AppendUvarint(b, uint64(len(raw))), raw...), err
	}
	var err error
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			return nil, errNoForm
		}
		if b, err = encode(b, v.Field(i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func encodeMap(b []byte, v reflect.Value) ([]byte, error) {
	var err error
	for of := v.MapRange(); of.Next(); {
		if b, err = encode(b, of.Key()); err != nil {
			return nil, err
		}
		if b, err = encode(b, of.Value()); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// decoder reads what encode wrote. After a failure it reads zeros.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) fail() {
	d.failed, d.rest = true, nil
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// length is at most what is left: everything takes a byte.
func (d *decoder) length() int {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return int(n) //nolint:gosec // at most what is left
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.rest) {
		d.fail()
		return nil
	}
	part := d.rest[:n]
	d.rest = d.rest[n:]
	return part
}

func (d *decoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(d.bytes(d.length())))
	case reflect.Bool:
		v.SetBool(d.number() == 1)
	case reflect.Int, reflect.Int64:
		n, size := binary.Varint(d.rest)
		if size <= 0 {
			d.fail()
			return
		}
		d.rest = d.rest[size:]
		v.SetInt(n)
	case reflect.Pointer:
		if d.number() == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem())
		}
	case reflect.Struct:
		d.structure(v)
	case reflect.Slice:
		d.slice(v)
	case reflect.Map:
		d.mapping(v)
	default:
		d.fail()
	}
}

func (d *decoder) structure(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		var at time.Time
		if at.UnmarshalBinary(d.bytes(d.length())) != nil {
			d.fail()
		}
		v.Set(reflect.ValueOf(at))
		return
	}
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			d.fail()
			return
		}
		d.value(v.Field(i))
	}
}

// count reads the length of a list or map; nil ones have -1.
func (d *decoder) count() int {
	n := d.number()
	if n == 0 || n-1 > uint64(len(d.rest)) {
		if n != 0 {
			d.fail()
		}
		return -1
	}
	return int(n - 1) //nolint:gosec // at most what is left
}

func (d *decoder) slice(v reflect.Value) {
	n := d.count()
	if n < 0 {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes(slices.Clone(d.bytes(n)))
		return
	}
	const more = 4 // so that the next values do not move them all
	v.Set(reflect.MakeSlice(v.Type(), n, n+more))
	for i := range n {
		d.value(v.Index(i))
		if d.failed {
			return
		}
	}
}

func (d *decoder) mapping(v reflect.Value) {
	n := d.count()
	if n < 0 {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for range n {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		d.value(key)
		if d.value(value); d.failed {
			return
		}
		v.SetMapIndex(key, value)
	}
}
