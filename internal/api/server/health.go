package server

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// health answers after a query, so that it also reports that the store can be read.
func (s *server) health(r *request) (any, error) {
	if err := r.done(); err != nil {
		return nil, err
	}
	_, err := s.store.Trees(r.Context(), perdure.TreeFilter{Limit: 1})
	return client.Health{OK: true, Draining: s.draining()}, err
}

func (s *server) version(r *request) (any, error) {
	return client.Version{Version: s.cfg.Version, API: "v1", Database: s.store.Database()}, r.done()
}
