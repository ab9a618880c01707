package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure"
)

// Limits of the HTTP server.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// shutdownTimeout is how long answers under way may take at the end.
	shutdownTimeout = 5 * time.Second
)

// Serve answers requests on l, executes all trees it may, and removes old ones,
// until ctx ends. Then it refuses new trees, drains the tasks that run, answers
// what was asked before, and returns nil. It closes l.
func (d *Daemon) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           d.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	g, ctx := errgroup.WithContext(ctx)
	drained := make(chan struct{})
	g.Go(func() error { return ignoreClosed(srv.Serve(l)) })
	g.Go(func() error {
		defer close(drained)
		return d.work(ctx, nil, patient)
	})
	g.Go(func() error {
		d.collect(ctx)
		return nil
	})
	if d.ipc != nil {
		g.Go(func() error { return d.ipc.server.Serve(ctx, d.ipc.listener) })
	}
	g.Go(func() error {
		<-ctx.Done()
		d.log.Info("stopping", "drain_timeout", d.cfg.DrainTimeout.String())
		close(d.draining)
		<-drained
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := srv.Shutdown(end); err != nil {
			return srv.Close()
		}
		return nil
	})
	return g.Wait()
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// collect removes old trees now and then.
func (d *Daemon) collect(ctx context.Context) {
	tick := time.NewTicker(d.cfg.CollectEvery)
	defer tick.Stop()
	for {
		report, err := d.store.Prune(ctx, perdure.PruneRequest{Policy: d.cfg.Retention})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.log.Error("collect old trees", "error", err)
		case len(report.Trees) > 0 || report.Blobs > 0:
			d.log.Info("collected old trees", "trees", len(report.Trees), "blobs", report.Blobs, "bytes", report.Bytes)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func quote(s string) string { return strconv.Quote(s) }
