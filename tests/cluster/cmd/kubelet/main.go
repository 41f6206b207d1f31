// Command kubelet is what kube-apiserver asks for exec, attach and port-forward: commands run on this
// machine, whatever the pod, and ports are this machine's. It listens on a free port of 127.0.0.1 with
// a certificate of its own, prints port=PORT, then one line when a session begins and one when it ends,
// and ends on TERM.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idle     = time.Hour
	creation = 30 * time.Second
)

type machine struct{}

// wait runs a command until it ends or the context does.
func wait(ctx context.Context, args []string, in io.Reader, out, errs io.WriteCloser) error {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Stdout, command.Stderr = out, errs
	// Waiting for the end of what comes would outlast the command.
	stdin, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	go func() {
		if in != nil {
			_, _ = io.Copy(stdin, in)
		}
		_ = stdin.Close()
	}()
	err = command.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

func (machine) ExecInContainer(ctx context.Context, _, _, _ string, args []string, in io.Reader, out, errs io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	return wait(ctx, args, in, out, errs)
}

func (machine) AttachContainer(ctx context.Context, _, _, _ string, in io.Reader, out, errs io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize) error {
	return wait(ctx, []string{"sh", "-c", "echo attached; exec cat"}, in, out, errs)
}

func (machine) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	where, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer where.Close()
	var ways sync.WaitGroup
	ways.Go(func() {
		_, _ = io.Copy(where, stream)
		_ = where.(*net.TCPConn).CloseWrite()
	})
	_, err = io.Copy(stream, where)
	_ = stream.Close()
	ways.Wait()
	return err
}

func serveCommand(w http.ResponseWriter, r *http.Request, isAttach bool) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	protocols := []string{"v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"}
	if isAttach {
		remotecommand.ServeAttach(w, r, machine{}, r.PathValue("pod"), "", r.PathValue("container"), options, idle, creation, protocols)
		return
	}
	remotecommand.ServeExec(w, r, machine{}, r.PathValue("pod"), "", r.PathValue("container"), r.Form["command"], options,
		idle, creation, protocols)
}

func servePorts(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, machine{}, r.PathValue("pod"), "", options, idle, creation, []string{"portforward.k8s.io"})
}

// told says when a session begins and ends.
func told(what string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Printf("begin %s %s\n", what, r.Header.Get("Upgrade"))
		defer fmt.Printf("end %s\n", what)
		serve(w, r)
	}
}

func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	own, err := certificate()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", told("exec", func(w http.ResponseWriter, r *http.Request) { serveCommand(w, r, false) }))
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", told("attach", func(w http.ResponseWriter, r *http.Request) { serveCommand(w, r, true) }))
	mux.HandleFunc("/portForward/{namespace}/{pod}", told("portForward", servePorts))
	// SPDY takes over connections of HTTP/1.1 alone.
	server := &http.Server{Handler: mux, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}}}
	fmt.Printf("port=%d\n", listener.Addr().(*net.TCPAddr).Port)
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
