package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	requestLimit = 5 * time.Second // a read waits for 3 s before it goes on to the API server
	troubleWait  = 50 * time.Millisecond
	pauseMax     = 20 * time.Millisecond
)

// What is asked how often, of a hundred.
var shares = []struct {
	kind  string
	share int
}{{"get", 42}, {"list", 8}, {"create", 16}, {"update", 12}, {"patch", 12}, {"delete", 10}}

type step struct {
	kind   string
	key    int
	hasIf  bool // of an update or a delete: only to the version that the client saw last
	pauses time.Duration
}

// plan is what a client does in a round; it depends on the seed alone.
func plan(seed uint64, round, client, nKeys, nSteps int) []step {
	chance := rand.New(rand.NewPCG(seed, uint64(round)<<16|uint64(client)))
	steps := make([]step, nSteps)
	for i := range steps {
		at := chance.IntN(100)
		for _, s := range shares {
			if steps[i].kind = s.kind; at < s.share {
				break
			}
			at -= s.share
		}
		steps[i].key = chance.IntN(nKeys)
		steps[i].hasIf = chance.IntN(2) == 0
		if chance.IntN(3) != 0 {
			steps[i].pauses = time.Duration(chance.Int64N(int64(pauseMax)))
		}
	}
	return steps
}

// client has a connection of its own, and asks one thing after another.
type client struct {
	http                   http.Client
	server, token, objects string // a path
	began                  time.Time
	number, round          int
	seen                   map[string]uint64 // the version of each key that it was told last
}

func newClient(o *options, began time.Time, number int) *client {
	return &client{
		http:   http.Client{Timeout: requestLimit, Transport: &http.Transport{}},
		server: o.server, token: o.token, objects: "/api/v1/namespaces/" + o.namespace + "/" + o.resource,
		began: began, number: number,
	}
}

func (c *client) now() int64 { return time.Since(c.began).Nanoseconds() }

func key(round, number int) string { return fmt.Sprintf("r%d-k%d", round, number) }

// run goes through the steps, up to the end.
func (c *client) run(round int, steps []step, end time.Time) []*operation {
	var history []*operation
	c.round, c.seen = round, map[string]uint64{}
	for i, s := range steps {
		if time.Now().After(end) {
			break
		}
		o := &operation{Round: round, Client: c.number, Kind: s.kind, Key: key(round, s.key)}
		if s.kind == "list" {
			o.Key = ""
		}
		if s.hasIf && (s.kind == "update" || s.kind == "delete") {
			o.If = c.seen[o.Key]
		}
		if s.kind == "create" || s.kind == "update" || s.kind == "patch" {
			o.Value = fmt.Sprintf("r%d-c%d-%d", round, c.number, i)
		}
		c.carryOut(o)
		history = append(history, o)
		time.Sleep(s.pauses)
	}
	return history
}

func (c *client) carryOut(o *operation) {
	o.Call = c.now()
	answer, err := c.send(o)
	if err == nil {
		err = c.read(o, answer)
	}
	o.Return = c.now()
	if err != nil {
		o.Outcome = unknown
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		o.Outcome = refused
	}
	if o.Outcome == unknown || o.Outcome == refused {
		time.Sleep(troubleWait)
	}
	for key, found := range o.Objects {
		c.seen[key] = found.Version
	}
}

// send returns an answer whose body is still to be read.
func (c *client) send(o *operation) (*http.Response, error) {
	method, path, body := requestOf(o)
	request, err := http.NewRequest(method, c.server+c.objects+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	if o.Kind == "patch" {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return c.http.Do(request)
}

func requestOf(o *operation) (method, path, body string) {
	version := ""
	if o.If != 0 {
		version = fmt.Sprintf(`, "resourceVersion": "%d"`, o.If)
	}
	value := fmt.Sprintf(`"annotations": {"value": "%s"}`, o.Value)
	written := fmt.Sprintf(`{"metadata": {"name": "%s"%s, %s}}`, o.Key, version, value)
	switch o.Kind {
	case "create":
		return "POST", "", written
	case "update":
		return "PUT", "/" + o.Key, written
	case "patch":
		return "PATCH", "/" + o.Key, `{"metadata": {` + value + "}}"
	case "delete":
		if o.If == 0 {
			return "DELETE", "/" + o.Key, ""
		}
		return "DELETE", "/" + o.Key, fmt.Sprintf(`{"kind": "DeleteOptions", "apiVersion": "v1",
			"preconditions": {"resourceVersion": "%d"}}`, o.If)
	case "list":
		return "GET", "", ""
	default:
		return "GET", "/" + o.Key, ""
	}
}

// answered is what is read of any answer: an object, a list, or a Status.
type answered struct {
	Kind, Reason string
	Metadata     metadata
	Items        []struct{ Metadata metadata }
}

type metadata struct {
	Name, UID, ResourceVersion string
	Annotations                map[string]string
}

func (c *client) read(o *operation, answer *http.Response) error {
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	o.Code, o.Passed = answer.StatusCode, answer.Header.Get("Kinformer-Source") == "upstream"
	var body answered
	if err = json.Unmarshal(text, &body); err != nil {
		return err
	}
	o.Outcome = outcome(o, body.Reason)
	if o.Outcome != ok {
		return nil
	}
	o.Objects = map[string]object{}
	if o.Kind == "list" {
		for _, item := range body.Items {
			o.add(item.Metadata)
		}
		o.Version = number(body.Metadata.ResourceVersion)
	} else if body.Kind != "Status" && o.Kind != "delete" {
		o.add(body.Metadata)
	}
	return nil
}

// add takes an object of this round; those of others are left over.
func (o *operation) add(found metadata) {
	if strings.HasPrefix(found.Name, fmt.Sprintf("r%d-", o.Round)) {
		o.Objects[found.Name] = object{found.Annotations["value"], number(found.ResourceVersion), found.UID}
	}
}

// outcome: the daemon's own 503 says that the request did not go out.
func outcome(o *operation, reason string) string {
	switch {
	case o.Code < 300:
		return ok
	case o.Code == 404:
		return absent
	case o.Code == 409 && reason == "AlreadyExists":
		return exists
	case o.Code == 409 && o.If != 0:
		return conflict
	case o.Code < 500 || (o.Code == 503 && !o.Passed):
		return refused
	default:
		return unknown
	}
}

func number(version string) uint64 {
	value, _ := strconv.ParseUint(version, 10, 64)
	return value
}
