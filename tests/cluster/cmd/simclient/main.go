// Command simclient is an ordinary client of a server that takes writes: it runs what controllers run
// and checks that they end where they must. A check prints a line; one that fails makes the exit code 1.
//
//	simclient -kubeconfig FILE [-seed N] [-changes N] informers|election|manager...
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

const patience = 60 * time.Second

// Not the program's own, in which controller-runtime has some already.
var (
	flags   = flag.NewFlagSet("simclient", flag.ExitOnError)
	seed    = flags.Uint64("seed", uint64(time.Now().UnixNano()), "of the changes")
	changes = flags.Int("changes", 300, "how many changes by each client")
)

var checks = map[string]func(context.Context, *rest.Config) error{
	"informers": checkInformers,
	"election":  checkElection,
	"manager":   checkManager,
}

func main() {
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file`")
	flags.Parse(os.Args[1:])
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config.QPS, config.Burst = 1000, 1000
	code := 0
	for _, name := range flags.Args() {
		if !run(name, config) {
			code = 1
		}
	}
	os.Exit(code)
}

func run(name string, config *rest.Config) bool {
	check, known := checks[name]
	if !known {
		fmt.Fprintf(os.Stderr, "no check %q\n", name)
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := check(ctx, config)
	if err != nil {
		fmt.Printf("%s: FAILED, seed %d: %v\n", name, *seed, err)
	}
	return err == nil
}

func pass(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
}

// until asks until the answer is yes.
func until(ctx context.Context, what string, is func() (bool, error)) error {
	var last error
	for {
		yes, err := is()
		if yes && err == nil {
			return nil
		}
		if err != nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain: %s (%v)", what, last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
