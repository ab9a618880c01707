package server

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/perdure/perdure"
)

// fromPrograms lets requests of programs pass and refuses those that a web page can make a
// browser send, through a proxy of the socket: by a name that an attacker's DNS server
// resolves to this machine (Host), from a page of another site (Origin, Sec-Fetch-Site), or
// as a form (Content-Type). Programs send none of these headers.
func (s *server) fromPrograms(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := checkOrigin(r); err != nil {
			s.fail(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

const opOrigin = "check request"

func checkOrigin(r *http.Request) error {
	if !ownHost(r.Host) {
		return refused(http.StatusMisdirectedRequest, fmt.Sprintf("the host %.100q is not this server", r.Host),
			"use localhost")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		return refused(http.StatusForbidden, fmt.Sprintf("requests of web pages are refused (Origin: %.100q)", origin), "")
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" && site != "same-origin" {
		return refused(http.StatusForbidden,
			fmt.Sprintf("requests of web pages are refused (Sec-Fetch-Site: %.100q)", site), "")
	}
	return checkContentType(r)
}

// ownHost reports whether a Host header names this machine. The client of this module sends
// "perdure".
func ownHost(host string) bool {
	name, port, err := net.SplitHostPort(host)
	if err != nil || port == "" {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	return slices.Contains([]string{"", "perdure", "localhost", "127.0.0.1", "::1"}, name)
}

// checkContentType refuses bodies that are not of a type that makes a browser ask the
// server before it sends them.
func checkContentType(r *http.Request) error {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	want := "application/json"
	if r.URL.Path == "/v1/contexts" {
		want = "application/x-tar"
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == want {
		return nil
	}
	return refused(http.StatusUnsupportedMediaType,
		fmt.Sprintf("the content type %.100q is not %s", r.Header.Get("Content-Type"), want),
		"add the header Content-Type: "+want)
}

func refused(status int, msg, hint string) error {
	return &statusError{status: status, err: &perdure.Error{Code: perdure.CodeInvalid, Op: opOrigin, Msg: msg, Hint: hint}}
}
