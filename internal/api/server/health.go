package server

import (
	"net/http"

	"github.com/perdure/perdure"
)

// health answers after a look into the store, so that it also tells that the
// store can be read.
func (s *server) health(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	if _, err := s.store.Trees(r.Context(), perdure.TreeFilter{Limit: 1}); err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		OK       bool `json:"ok"`
		Draining bool `json:"draining"`
	}{true, s.draining()})
}

func (s *server) version(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Version  string `json:"version"`
		API      string `json:"api"`
		Database string `json:"database"`
	}{s.cfg.Version, "v1", s.store.Database()})
}
