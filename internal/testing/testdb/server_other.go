//go:build !unix

package testdb

import "errors"

func startServer() (*postgres, error) {
	return nil, errors.New("the tests start a PostgreSQL server on Unix systems only")
}
