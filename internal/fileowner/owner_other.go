//go:build !unix

package fileowner

import "io/fs"

func of(fs.FileInfo) file { return file{} }
