package record

import (
	"encoding/json"
	"fmt"
	"time"
)

// text scans a column of JSON.
type text json.RawMessage

// Scan reads a column.
func (t *text) Scan(v any) error {
	switch v := v.(type) {
	case string:
		if *t = nil; v != "" {
			*t = text(v)
		}
	case []byte:
		*t = append(text{}, v...)
	default:
		return fmt.Errorf("a column holds %T, not text", v)
	}
	return nil
}

// micros scans a column of microseconds.
type micros time.Time

// Scan reads a column; NULL is the zero time.
func (m *micros) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*m = micros{}
	case int64:
		*m = micros(time.UnixMicro(v).UTC())
	default:
		return fmt.Errorf("a column holds %T, not a time", v)
	}
	return nil
}

// maybe returns a time, nil for the zero time.
func maybe(m micros) *time.Time {
	if t := time.Time(m); !t.IsZero() {
		return &t
	}
	return nil
}

// column returns a time as the database keeps it.
func column(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}
