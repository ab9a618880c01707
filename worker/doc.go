// Package worker runs tasks: it claims them from a store, hands each to the
// handler of its tree's kind, and sees to it that every attempt ends in the
// store, whatever the handler does.
//
//	w, err := worker.New(worker.Config{
//		Store:    store,
//		Session:  session,
//		Handlers: map[string]worker.Handler{"run": executor},
//	})
//	if err != nil {
//		return err
//	}
//	return w.Run(ctx) // until ctx ends
//
// A worker does not look into tasks and does not know what a handler does. A
// task that waits for its children is not claimed, so it holds none of the
// worker's places: with one place, a tree of any depth finishes.
//
// # Ends of an attempt
//
// A handler settles its task through the lease (completes it, makes it wait for
// children) and returns nil. When it returns an error instead, or panics, the
// worker fails the attempt; what the error is decides whether and when it is
// tried again, see [Failure]. When its context was cancelled because the lease
// was lost, nothing is left to settle; when the worker is stopping, the task
// goes back to the queue and the same attempt continues in another process.
//
// # Programs
//
// A program whose handlers run other programs (command agents, exec models, hooks,
// loops) calls [EnterGuard] first in main.
//
// # Stopping
//
// When the context of Run ends, the worker claims no more and lets the work
// under way continue for Config.DrainTimeout. Then it cancels that work with the
// cause [ErrStopping] and gives the tasks back. A handler need not wait for that:
// it can watch [Worker.Stopping]. Run returns when everything it started has ended.
package worker
