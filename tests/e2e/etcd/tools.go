//go:build tools

// Package tools names the etcd server that the end-to-end tests build.
package tools

import _ "go.etcd.io/etcd/server/v3"
