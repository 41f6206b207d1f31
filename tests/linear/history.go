package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Outcomes. Of a write all but `ok` and `unknown` mean that it changed nothing.
const (
	ok       = "ok"
	absent   = "absent"   // 404
	exists   = "exists"   // 409, of a create
	conflict = "conflict" // 409: the object is of another version
	refused  = "refused"  // for a reason that says nothing of the object
	unknown  = "unknown"  // nobody can tell whether it was carried out
)

// object is one state of a key. No two writes have the same value.
type object struct {
	Value   string `json:"value"`
	Version uint64 `json:"version"`
	UID     string `json:"uid,omitempty"`
}

// operation is what one client asked and was answered. Times are in nanoseconds from the start of the run.
type operation struct {
	Round   int               `json:"round"`
	Client  int               `json:"client"`
	Kind    string            `json:"kind"`            // create, update, patch, delete, get, list
	Key     string            `json:"key,omitempty"`   // not of a list
	Value   string            `json:"value,omitempty"` // to be written
	If      uint64            `json:"if,omitempty"`    // only to an object of this version
	Call    int64             `json:"call"`
	Return  int64             `json:"return"`
	Outcome string            `json:"outcome"`
	Objects map[string]object `json:"objects,omitempty"` // in the answer, by key
	Version uint64            `json:"version,omitempty"` // of a list
	Passed  bool              `json:"passed,omitempty"`  // the API server answered
	Code    int               `json:"code,omitempty"`
	isLost  bool              // it had no answer
}

func (o *operation) isRead() bool { return o.Kind == "get" || o.Kind == "list" }

// concerns says whether it writes or reads the key; a list reads all of them.
func (o *operation) concerns(key string) bool { return o.Key == key || o.Kind == "list" }

func (o *operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %d %10s..%-10s %-6s %s", o.Client, seconds(o.Call), seconds(o.Return), o.Kind, o.Key)
	if o.Value != "" {
		fmt.Fprintf(&b, " %s", o.Value)
	}
	if o.If != 0 {
		fmt.Fprintf(&b, " if %d", o.If)
	}
	fmt.Fprintf(&b, " -> %s", o.Outcome)
	for key, found := range o.Objects {
		fmt.Fprintf(&b, " %s=%s@%d", key, found.Value, found.Version)
	}
	if o.Kind == "list" {
		fmt.Fprintf(&b, " at %d", o.Version)
	}
	if o.Passed && o.isRead() {
		b.WriteString(" (by the API server)")
	}
	return b.String()
}

func seconds(at int64) string {
	if at == math.MaxInt64 {
		return "never"
	}
	return fmt.Sprintf("%.4fs", time.Duration(at).Seconds())
}

func writeHistory(to io.Writer, history []*operation) error {
	encoder := json.NewEncoder(to)
	for _, o := range history {
		if err := encoder.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func readHistory(from io.Reader) ([]*operation, error) {
	var history []*operation
	decoder := json.NewDecoder(bufio.NewReader(from))
	for {
		o := new(operation)
		switch err := decoder.Decode(o); err {
		case nil:
			history = append(history, o)
		case io.EOF:
			return history, nil
		default:
			return nil, err
		}
	}
}
