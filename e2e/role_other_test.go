//go:build !linux

package e2e

import "errors"

const roleEnv = "PERDURE_E2E_ROLE"

func playRole(string) error { return errors.New("child processes of tests have no role here") }
