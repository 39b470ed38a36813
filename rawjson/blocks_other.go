//go:build !amd64

package rawjson

func checkBlocks(_ []byte, i int) int { return i }

func skipBlocks(_ []byte, i int) int { return i }
