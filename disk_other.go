//go:build !unix

package perdure

func isDiskFull(error) bool { return false }
