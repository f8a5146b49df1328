package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"decree/project"
)

// Listen listens on an address. One that is not of this machine's loopback needs a certificate,
// since everybody on the way could read the token otherwise.
func Listen(address string, certified bool) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, &project.Error{Kind: project.Usage, Msg: fmt.Sprintf("--addr %s: %v", address, err), Advice: "write HOST:PORT, for example 127.0.0.1:8080; port 0 takes a free one"}
	}
	if !certified && !at.IP.IsLoopback() {
		return nil, (&project.Error{Kind: project.Usage, Msg: fmt.Sprintf("--addr %s: others can reach this address, and could read along without TLS", address)}).
			Hintf("give --tls-cert and --tls-key, or listen on 127.0.0.1 and come by 'ssh -L'")
	}
	return net.ListenTCP("tcp", at)
}

// connections bounds how many there are. Where one is too many, the one goes that has waited longest
// for a request of who may ask, so that who keeps a thousand of them open, or begins requests that he
// never ends, shuts nobody out.
type connections struct {
	mu      sync.Mutex
	waiting map[net.Conn]time.Time // since when
	working map[net.Conn]struct{}  // a request of theirs is being answered
}

// connection is the key of a request's connection in its context.
type connection struct{}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connection{}, conn)
}

// works says that a request has come from who may ask.
func (c *connections) works(r *http.Request) {
	conn, _ := r.Context().Value(connection{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.waiting[conn]; known {
		delete(c.waiting, conn)
		c.working[conn] = struct{}{}
	}
}

// changed follows what becomes of a connection.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting, c.working = map[net.Conn]time.Time{}, map[net.Conn]struct{}{}
	}
	switch state {
	case http.StateNew, http.StateIdle:
		delete(c.working, conn)
		c.waiting[conn] = time.Now()
	case http.StateClosed, http.StateHijacked:
		delete(c.working, conn)
		delete(c.waiting, conn)
	}
	if len(c.waiting)+len(c.working) <= maxConnections {
		return
	}
	var longest net.Conn
	for w, since := range c.waiting {
		if longest == nil || since.Before(c.waiting[longest]) {
			longest = w
		}
	}
	if longest != nil {
		delete(c.waiting, longest)
		_ = longest.Close()
	}
}
