package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// runCompact forgets what etcd remembers of the past: a watch or a paged list from an older
// resourceVersion is then Expired, once the apiserver does not have it in its own cache either.
func runCompact(ctx context.Context, flags *flag.FlagSet, args []string) error {
	endpoint := flags.String("etcd", "", "etcd's client `URL`")
	flags.Parse(args)
	if *endpoint == "" {
		return errors.New("-etcd is needed")
	}

	client, err := dialEtcd(*endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	got, err := client.Get(ctx, "current-revision", clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	revision := got.Header.Revision
	if _, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical()); err != nil {
		return err
	}
	fmt.Printf("revision=%d\n", revision)
	return nil
}
