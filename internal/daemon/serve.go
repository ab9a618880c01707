package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api/server"
)

// Limits of the HTTP server.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	// shutdownTimeout bounds the time of running requests when the server stops.
	shutdownTimeout = 5 * time.Second
)

// Serve answers requests on l, executes trees and removes old ones until ctx ends. Then it
// refuses new trees, waits for running tasks and requests, and returns nil. It closes l.
func (d *Daemon) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           d.handler,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ConnContext:       server.ConnContext,
		ErrorLog:          slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	g, ctx := errgroup.WithContext(ctx)
	drained := make(chan struct{})
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		defer close(drained)
		return d.work(ctx, nil, patient)
	})
	g.Go(func() error {
		d.collect(ctx)
		return nil
	})
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case <-d.store.Removed():
			return perdure.ErrStoreRemoved
		}
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

// collect removes old trees at intervals.
func (d *Daemon) collect(ctx context.Context) {
	each(ctx, d.cfg.CollectEvery, func() {
		report, err := d.store.Prune(ctx, perdure.PruneRequest{Policy: d.cfg.Retention})
		switch {
		case ctx.Err() != nil: // the server stops
		case err != nil:
			d.log.Error("collect old trees", "error", err)
		case len(report.Trees) > 0 || report.Blobs > 0:
			d.log.Info("collected old trees", "trees", len(report.Trees), "blobs", report.Blobs, "bytes", report.Bytes)
		}
	})
}
