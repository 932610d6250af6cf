//go:build tools

// Package tools names kwok, which plays nodes and kubelets in the end-to-end tests.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
