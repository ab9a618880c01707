package workspace

import (
	"os"
	"slices"
	"sync"
	"time"
)

// maxRecent is the number of manifests kept in memory: an iteration of a loop compares the
// snapshots before and after it with the first and the trusted one.
const maxRecent = 4

// recent are the manifests last read, the latest last. They must not be changed.
type recent struct {
	mu  sync.Mutex // guards all
	all []readManifest
}

// readManifest is a manifest with the time and size of its file.
type readManifest struct {
	id   ID
	time time.Time
	size int64
	m    *manifest
}

// recall is load with a cache: it does not read a manifest again whose file did not change.
func (w *Workspace) recall(op string, id ID) (*manifest, error) {
	if !id.valid() {
		return w.load(op, id)
	}
	info, err := os.Stat(w.manifestPath(id))
	if err != nil {
		return w.load(op, id) // for its error
	}
	r := &w.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.all, func(one readManifest) bool { return one.id == id }); i >= 0 {
		one := r.all[i]
		r.all = slices.Delete(r.all, i, i+1)
		if one.size == info.Size() && one.time.Equal(info.ModTime()) {
			r.all = append(r.all, one)
			return one.m, nil
		}
	}
	m, err := w.load(op, id)
	if err != nil {
		return nil, err
	}
	r.all = append(r.all, readManifest{id, info.ModTime(), info.Size(), m})
	if over := len(r.all) - maxRecent; over > 0 {
		r.all = slices.Delete(r.all, 0, over)
	}
	return m, nil
}
