package eta

import "math"

// Plan adds planned tasks of a depth and the calls they are expected to make.
func (t *Timing) Plan(depth int, tasks, calls int64) {
	d := t.Level(depth)
	d.Planned += tasks
	d.Calls += calls
}

// Tick accounts for the time since the last tick, in which so many tasks ran. now is in
// microseconds.
func (t *Timing) Tick(now, running int64) {
	if t.Last == 0 && t.Busy == 0 {
		t.Busy = t.Sum // of a tree that an older version began
	}
	passed := now - t.Last
	if t.Last != 0 && passed > 0 && running > 0 {
		t.Busy += passed
		t.Workers = t.recentWorkers(passed, running)
	}
	t.Last = max(now, t.Last)
}

// Skip leaves out the time since the last tick: no process worked on the tree.
func (t *Timing) Skip(now int64) { t.Last = max(now, t.Last) }

// recentWorkers returns the average number of running tasks, over about the time of a task.
func (t *Timing) recentWorkers(passed, running int64) int64 {
	latest := 1000 * running
	var ended int64
	for _, d := range t.Depths {
		ended += d.Ended
	}
	if t.Sum == 0 || ended == 0 {
		return latest
	}
	half := float64(t.Sum) / float64(ended) / 2
	keep := math.Exp(-float64(passed) / half)
	return latest + int64(math.Round(keep*float64(t.Workers-latest)))
}

// Tasks returns the number of tasks that exist or are planned.
func (t *Timing) Tasks() int64 {
	var n int64
	for i := range t.Depths {
		n += t.Depths[i].tasks()
	}
	return n
}

func (d *Level) tasks() int64 { return max(d.Planned, d.Total) }

// weight returns the expected number of calls of a task.
func (d *Level) weight() float64 {
	if d.Planned == 0 {
		return 1
	}
	return float64(d.Calls) / float64(d.Planned)
}

// Share returns which share of the planned calls belongs to tasks that are terminal.
func (t *Timing) Share() float64 {
	var done, planned float64
	var ended, tasks int64
	for i := range t.Depths {
		d := &t.Depths[i]
		done += d.weight() * float64(d.Ended)
		planned += d.weight() * float64(d.tasks())
		ended, tasks = ended+d.Ended, tasks+d.tasks()
	}
	switch {
	case planned > 0:
		return min(done/planned, 1)
	case tasks > 0: // no task makes a call
		return min(float64(ended)/float64(tasks), 1)
	}
	return 0
}

// Running are the tasks that run at the moment of a forecast, and how long they have, together.
type Running struct {
	Tasks int64
	// Elapsed and Newest are in microseconds: of all of them, and of the one that began last.
	Elapsed, Newest int64
}

// Remaining returns the estimated time in microseconds until the tree ends. It is not known
// before a task completed, and while a task may create more tasks than are planned.
//
// The tasks of a depth and below it are done in rounds of as many as run at once; then one
// task after another follows at each depth above.
func (t *Timing) Remaining(running Running) (us float64, known bool) {
	if t.Open > 0 || t.Sum == 0 {
		return 0, false
	}
	perCall := t.perCall()
	workers := float64(max(running.Tasks, (t.Workers+500)/1000, 1))
	var count, work, longest float64 // at a depth and below it
	above := t.chain(perCall)
	for i := len(t.Depths) - 1; i >= 0; i-- {
		each, left := t.Depths[i].each(perCall), t.Depths[i].left()
		if each == 0 || left == 0 {
			continue
		}
		above -= each
		count, work = count+left, work+left*each
		longest = max(longest, rounds(count, work/count, workers, running)+above)
	}
	return longest, true
}

// overdue is the share of the duration of a task for which one is expected to run on that has taken
// longer already.
const overdue = 0.1

// rounds returns the time that tasks of one duration take.
func rounds(count, each, workers float64, running Running) float64 {
	begun := min(float64(running.Tasks), count)
	var rest float64
	switch {
	case begun == 0:
	case begun == count:
		rest = max(each-float64(running.Newest), overdue*each)
	default:
		rest = max(each-float64(running.Elapsed)/float64(running.Tasks), overdue*each)
	}
	return rest + each*math.Ceil((count-begun)/workers)
}

// left returns the number of tasks that are not terminal.
func (d *Level) left() float64 { return float64(max(d.tasks()-d.Ended, 0)) }

// each returns the expected active time of a task.
func (d *Level) each(perCall float64) float64 {
	if d.Recent > 0 && (d.Planned == 0 || d.Calls > 0) {
		return float64(d.Recent)
	}
	return d.weight() * perCall
}

// perCall returns the active time of the completed tasks by their expected calls.
func (t *Timing) perCall() float64 {
	var time, calls float64
	for i := range t.Depths {
		d := &t.Depths[i]
		if d.Recent > 0 && d.weight() > 0 {
			time += float64(d.Recent) * float64(d.Ended)
			calls += d.weight() * float64(d.Ended)
		}
	}
	if calls == 0 {
		return 0
	}
	return time / calls
}

// chain returns the time of one task of each depth that has tasks left.
func (t *Timing) chain(perCall float64) float64 {
	var sum float64
	for i := range t.Depths {
		if d := &t.Depths[i]; d.left() > 0 {
			sum += d.each(perCall)
		}
	}
	return sum
}
