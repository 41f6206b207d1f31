// Prints what a NATS server has of kinformer's plugin, as JSON lines: each message of the stream in its order, then each key of the bucket.
// With -put KEY it writes that into the bucket instead, with -delete-stream or -delete-bucket it deletes one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type line struct {
	From    string          `json:"from"` // "stream" or "bucket"
	Key     string          `json:"key"`
	ID      string          `json:"id,omitempty"`
	Version string          `json:"version,omitempty"`
	Payload json.RawMessage `json:"payload"`
}

func main() {
	server := flag.String("server", "", "URL")
	authority := flag.String("ca", "", "file of certificates that the server's is to be signed by")
	stream := flag.String("stream", "KINFORMER", "")
	bucket := flag.String("bucket", "kinformer", "")
	put := flag.String("put", "", "")
	deletesStream := flag.Bool("delete-stream", false, "")
	deletesBucket := flag.Bool("delete-bucket", false, "")
	flag.Parse()
	var options []nats.Option
	if *authority != "" {
		options = append(options, nats.RootCAs(*authority))
	}
	connection, err := nats.Connect(*server, options...)
	check(err)
	defer connection.Close()
	js, err := jetstream.New(connection)
	check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch {
	case *put != "":
		store, err := js.KeyValue(ctx, *bucket)
		check(err)
		_, err = store.Put(ctx, *put, []byte(`{"by":"somebody else"}`))
		check(err)
	case *deletesStream:
		check(js.DeleteStream(ctx, *stream))
	case *deletesBucket:
		check(js.DeleteKeyValue(ctx, *bucket))
	default:
		out := json.NewEncoder(os.Stdout)
		dumpStream(ctx, js, *stream, out)
		dumpBucket(ctx, js, *bucket, out)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func dumpStream(ctx context.Context, js jetstream.JetStream, name string, out *json.Encoder) {
	stream, err := js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return
	}
	check(err)
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	check(err)
	for state := stream.CachedInfo().State; state.Msgs > 0; {
		message, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
		check(err)
		if message.Headers().Get("KV-Operation") == "" { // else a writer's claim
			check(out.Encode(line{"stream", message.Subject(), message.Headers().Get(nats.MsgIdHdr),
				message.Headers().Get("Kinformer-Version"), message.Data()}))
		}
		metadata, err := message.Metadata()
		check(err)
		if metadata.Sequence.Stream >= state.LastSeq {
			return
		}
	}
}

func dumpBucket(ctx context.Context, js jetstream.JetStream, name string, out *json.Encoder) {
	bucket, err := js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return
	}
	check(err)
	watcher, err := bucket.WatchAll(ctx, jetstream.IgnoreDeletes())
	check(err)
	for entry := range watcher.Updates() {
		if entry == nil { // that was all
			return
		}
		check(out.Encode(line{From: "bucket", Key: entry.Key(), Payload: entry.Value()}))
	}
}
