// Admission webhooks: a server with controller-runtime, and the load for every server.
//
//	admission serve -port 9443 -certificate server.pem -key server.key
//	admission load -port 9443 -authority ca.pem -pid 4711
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

const (
	validatePath = "/validate/example.com/websites"
	mutatePath   = "/mutate/example.com/websites"
)

func main() {
	flags := flag.NewFlagSet("admission", flag.ExitOnError)
	port := flags.Int("port", 9443, "of the server")
	certificate := flags.String("certificate", "", "the certificate of the server (PEM)")
	key := flags.String("key", "", "the certificate's key (PEM)")
	authority := flags.String("authority", "", "the authority of the server's certificate (PEM)")
	pid := flags.Int("pid", 0, "of the server, whose CPU time is measured")
	connections := flags.Int("connections", 16, "each with one request at a time")
	period := flags.Duration("period", 4*time.Second, "of each of the two measurements")
	if len(os.Args) < 2 {
		fail(fmt.Errorf("a command is required: serve or load"))
	}
	_ = flags.Parse(os.Args[2:]) // it exits on an error
	var err error
	switch os.Args[1] {
	case "serve":
		err = serve(*port, *certificate, *key)
	case "load":
		err = load(*port, *authority, *pid, *connections, *period)
	default:
		err = fmt.Errorf("unknown command %q: use serve or load", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
