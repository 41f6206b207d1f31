// Command loader fills a test cluster, changes what is in it, and says what it holds. Each verb is
// one file. Results are one line of key=value pairs on standard output.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

type verb struct {
	name    string
	summary string
	run     func(ctx context.Context, flags *flag.FlagSet, args []string) error
}

var verbs = []verb{
	{"load", "make pods from a manifest, status included (the default)", runLoad},
	{"churn", "create, change and delete those pods at a rate", runChurn},
	{"events", "change those pods in etcd at a rate, each event numbered and timed", runEvents},
	{"delete", "delete a namespace's objects, or the namespace too", runDelete},
	{"compact", "compact etcd at its current revision", runCompact},
	{"checksum", "list a resource and print the checksum of its keys and versions", runChecksum},
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: loader [VERB] [FLAGS]; loader VERB -help lists the flags")
	for _, v := range verbs {
		fmt.Fprintf(os.Stderr, "  %-10s %s\n", v.name, v.summary)
	}
}

func main() {
	name, args := "load", os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	for _, v := range verbs {
		if v.name != name {
			continue
		}
		if err := v.run(ctx, flag.NewFlagSet("loader "+name, flag.ExitOnError), args); err != nil {
			fmt.Fprintf(os.Stderr, "loader %s: %v\n", name, err)
			os.Exit(1)
		}
		return
	}
	usage()
	os.Exit(2)
}
