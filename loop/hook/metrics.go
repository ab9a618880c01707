package hook

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

// Metrics keeps how long handlers took, in memory of a fixed size: about
// 2.5 KiB for each hook that came. It is safe for concurrent use; the zero value is
// ready.
type Metrics struct {
	mu    sync.Mutex // guards what follows
	hooks map[Name]*spread
	// iterations are the sums of iterations that have not ended; see End.
	iterations map[int]time.Duration
	hookTime   time.Duration
	wall       time.Duration
}

// Stats are the durations of the invocations at one hook. P95 and P99 are
// exact to 1/16 and never too low; Max is exact.
type Stats struct {
	Hook     Name
	Count    int64
	Total    time.Duration
	P95, P99 time.Duration
	Max      time.Duration
}

// Overhead is the time of handlers in relation to the time of the iterations.
type Overhead struct {
	// HookTime is the sum of the handlers' time, Wall all the time that passed.
	// Handlers without a time-out wait for people; they do not count.
	HookTime, Wall time.Duration
	// Percent is what handlers add to the rest: 100 × HookTime ÷ (Wall −
	// HookTime). It is 0 when nothing is known of the rest.
	Percent float64
}

func overhead(hookTime, wall time.Duration) Overhead {
	o := Overhead{HookTime: hookTime, Wall: wall}
	if rest := wall - hookTime; rest > 0 {
		o.Percent = 100 * float64(hookTime) / float64(rest)
	}
	return o
}

// maxIterations bounds the sums of iterations whose end is not reported.
const maxIterations = 64

// Add counts an invocation. Those of hooks that are not in [Table] are left
// out.
func (m *Metrics) Add(r Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.hooks[r.Hook]
	if s == nil {
		if !r.Hook.known() {
			return
		}
		if m.hooks == nil {
			m.hooks, m.iterations = make(map[Name]*spread), make(map[int]time.Duration)
		}
		s = new(spread)
		m.hooks[r.Hook] = s
	}
	s.add(r.Duration)
}

// spend counts the time of a handler into an iteration.
func (m *Metrics) spend(iteration int, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.iterations[iteration]; !there && len(m.iterations) >= maxIterations {
		clear(m.iterations)
	}
	if m.iterations == nil {
		m.hooks, m.iterations = make(map[Name]*spread), make(map[int]time.Duration)
	}
	m.iterations[iteration] += d
}

// end returns the overhead of an iteration that took wall, and adds it to the
// whole.
func (m *Metrics) end(iteration int, wall time.Duration) Overhead {
	m.mu.Lock()
	defer m.mu.Unlock()
	spent := m.iterations[iteration]
	delete(m.iterations, iteration)
	m.hookTime += spent
	m.wall += wall
	return overhead(spent, wall)
}

// Overhead returns that of all iterations that ended.
func (m *Metrics) Overhead() Overhead {
	m.mu.Lock()
	defer m.mu.Unlock()
	return overhead(m.hookTime, m.wall)
}

// Stats returns a row for each hook that had an invocation, in the order of
// [Table].
func (m *Metrics) Stats() []Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Stats
	for _, name := range Names() {
		s := m.hooks[name]
		if s == nil {
			continue
		}
		all = append(all, Stats{Hook: name, Count: s.count, Total: s.total, P95: s.quantile(0.95), P99: s.quantile(0.99),
			Max: s.most})
	}
	return all
}

// The buckets of a spread: each power of two of microseconds is divided into
// subBuckets of equal width. Beyond the last there are 2^40 µs, 12 days.
const (
	subBits    = 4
	subBuckets = 1 << subBits
	maxPower   = 40
	buckets    = (maxPower - subBits + 1) * subBuckets
)

// spread is a histogram of durations.
type spread struct {
	count   int64
	total   time.Duration
	most    time.Duration
	buckets [buckets]uint32
}

func (s *spread) add(d time.Duration) {
	d = max(0, d)
	s.count++
	s.total += d
	s.most = max(s.most, d)
	if i := bucketOf(d); s.buckets[i] < math.MaxUint32 {
		s.buckets[i]++
	}
}

// bucketOf numbers the bucket of a duration.
func bucketOf(d time.Duration) int {
	us := d.Microseconds()
	if us < subBuckets {
		return int(us)
	}
	power := bits.Len64(uint64(us)) - 1 // at least subBits
	sub := us >> (power - subBits) & (subBuckets - 1)
	return min(buckets-1, (power-subBits+1)<<subBits+int(sub))
}

// topOf is the longest duration in a bucket.
func topOf(i int) time.Duration {
	if i < subBuckets {
		return time.Duration(i+1)*time.Microsecond - 1
	}
	power := i>>subBits + subBits - 1
	sub := i & (subBuckets - 1)
	return time.Duration(subBuckets+sub+1)<<(power-subBits)*time.Microsecond - 1
}

// quantile is a duration that a part q of all does not exceed.
func (s *spread) quantile(q float64) time.Duration {
	rank := int64(math.Ceil(q * float64(s.count)))
	var seen int64
	for i, n := range s.buckets {
		seen += int64(n)
		if seen >= rank && n > 0 {
			return min(s.most, topOf(i))
		}
	}
	return s.most
}
