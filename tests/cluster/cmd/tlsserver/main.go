// Command tlsserver answers every request over TLS with one status code and a Status object, to
// show clients what a real apiserver cannot be made to: an expired serving certificate, a 401 or
// 503 that stays. It listens on a free port of 127.0.0.1, prints url=https://127.0.0.1:PORT, then
// one line a request, and ends on TERM or after -for.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var reasons = map[int]string{
	400: "BadRequest",
	401: "Unauthorized",
	403: "Forbidden",
	404: "NotFound",
	410: "Expired",
	422: "Invalid",
	429: "TooManyRequests",
	500: "InternalError",
	503: "ServiceUnavailable",
	504: "Timeout",
}

type answer struct {
	code       int
	retryAfter string
}

func (a answer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Printf("request=%q status=%d\n", r.Method+" "+r.URL.RequestURI(), a.code)
	if a.retryAfter != "" {
		w.Header().Set("Retry-After", a.retryAfter)
	}
	outcome := "Failure"
	if a.code < 300 {
		outcome = "Success"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":%q,"message":%q,"reason":%q,"code":%d}`+"\n",
		outcome, strings.ToLower(http.StatusText(a.code)), reasons[a.code], a.code)
}

func run() error {
	cert := flag.String("cert", "", "serving certificate, PEM")
	key := flag.String("key", "", "its key, PEM")
	code := flag.Int("status", 401, "the status code of every answer")
	retryAfter := flag.String("retry-after", "", "value of a Retry-After header")
	life := flag.Duration("for", 5*time.Minute, "end after this long")
	flag.Parse()
	if *code < 200 || *code > 599 {
		return errors.New("-status: " + strconv.Itoa(*code) + " is no final status code")
	}

	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:   answer{*code, *retryAfter},
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		ErrorLog:  log.New(os.Stdout, "", 0),
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *life)
	defer cancel()
	context.AfterFunc(ctx, func() { server.Close() })

	fmt.Printf("url=https://%s\n", listener.Addr())
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "tlsserver:", err)
		os.Exit(1)
	}
}
