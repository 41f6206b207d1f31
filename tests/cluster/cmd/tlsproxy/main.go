// Command tlsproxy stands between a client and an apiserver and ends the client's TLS, to show what
// a real apiserver cannot be made to: a serving certificate of another authority from one
// connection to the next, a token that is revoked, connections that break. What it is told it reads
// from files, for each connection or request anew:
//
//	-identity  serving certificate and key in one PEM file
//	-revoked   Authorization values, one a line, that are answered with 401
//
// It listens on a free port, prints url=https://ADDRESS, then one line a request; HUP closes all
// connections, TERM ends it, and so does the end of its standard input.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

// connections are the open ones of clients.
type connections struct {
	lock sync.Mutex
	open map[net.Conn]bool
}

func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.lock.Lock()
	defer c.lock.Unlock()
	switch state {
	case http.StateNew:
		c.open[conn] = true
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

func (c *connections) closeAll() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for conn := range c.open {
		conn.Close()
	}
}

func isRevoked(path, authorization string) bool {
	text, err := os.ReadFile(path)
	if err != nil || authorization == "" {
		return false
	}
	for _, line := range strings.Split(string(text), "\n") {
		if line == authorization {
			return true
		}
	}
	return false
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprintln(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",`+
		`"message":"Unauthorized","reason":"Unauthorized","code":401}`)
}

func newProxy(backend, authority string) (*httputil.ReverseProxy, error) {
	target, err := url.Parse(backend)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	return proxy, nil
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	identity := flag.String("identity", "", "serving certificate and key, PEM")
	revoked := flag.String("revoked", "", "file of Authorization values")
	backend := flag.String("backend", "", "https://ADDRESS of the apiserver")
	authority := flag.String("backend-ca", "", "its certificate authority, PEM")
	flag.Parse()

	proxy, err := newProxy(*backend, *authority)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	clients := &connections{open: map[net.Conn]bool{}}
	server := &http.Server{
		ConnState: clients.note,
		ErrorLog:  log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			// A resumed session shows no certificate.
			SessionTicketsDisabled: true,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(*identity, *identity)
				return &pair, err
			},
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			authorization := r.Header.Get("Authorization")
			fmt.Printf("request=%q authorization=%q\n", r.Method+" "+r.URL.RequestURI(), authorization)
			if isRevoked(*revoked, authorization) {
				refuse(w)
				return
			}
			proxy.ServeHTTP(w, r)
		}),
	}

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if s != syscall.SIGHUP {
				server.Close()
				return
			}
			clients.closeAll()
		}
	}()
	go func() {
		io.Copy(io.Discard, os.Stdin)
		server.Close()
	}()

	fmt.Printf("url=https://%s\n", listener.Addr())
	if err := server.ServeTLS(listener, "", ""); err != http.ErrServerClosed {
		return err
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "tlsproxy:", err)
		os.Exit(1)
	}
}
