//go:build !unix

package main

import "os"

// peak returns 0: the peak memory is not known here.
func peak(*os.ProcessState) int64 { return 0 }
