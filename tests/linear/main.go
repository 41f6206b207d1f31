// Command linear has clients write and read objects of one type at once, records what each was answered, and holds the history
// to what the consistency of a sidecar promises:
//
//	linear -server URL -token TOKEN -namespace NAME -resource configmaps -mode latest|session|cache -seed 7 -seconds 20
//	linear -mode session -check HISTORY
//
// A round has keys of its own, and a schedule that depends on the seed and its number alone; what happens meanwhile to
// the server is somebody else's business. With -record a round that contradicts its promise is written to a file,
// which -check reads. Prints one line of JSON; the exit status is 1 if there is a violation.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

type options struct {
	server, token, namespace, resource, mode string
	checks, record                           string
	seed                                     uint64
	clients, keys, steps                     int
	length                                   time.Duration
}

type summary struct {
	Mode       string         `json:"mode"`
	Seed       uint64         `json:"seed"`
	Rounds     int            `json:"rounds"`
	Outcomes   map[string]int `json:"outcomes"`
	Codes      map[int]int    `json:"codes"`
	Cached     int            `json:"cachedReads"`
	Passed     int            `json:"passedReads"`
	Stale      int            `json:"stale"`
	Undecided  int            `json:"undecided"`
	Violations int            `json:"violations"`
}

func main() {
	var o options
	seconds := flag.Float64("seconds", 10, "how long")
	flag.StringVar(&o.server, "server", "", "`URL` of the sidecar")
	flag.StringVar(&o.token, "token", "", "bearer token")
	flag.StringVar(&o.namespace, "namespace", "", "where")
	flag.StringVar(&o.resource, "resource", "configmaps", "of the core group")
	flag.StringVar(&o.mode, "mode", "", "what is promised: latest, session or cache")
	flag.StringVar(&o.checks, "check", "", "a recorded `history`, instead of a server")
	flag.StringVar(&o.record, "record", "", "the `file` for the history of a round that contradicts")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the schedule")
	flag.IntVar(&o.clients, "clients", 6, "at once")
	flag.IntVar(&o.keys, "keys", 4, "of a round")
	flag.IntVar(&o.steps, "steps", 80, "of a client in a round")
	flag.Parse()
	o.length = time.Duration(*seconds * float64(time.Second))
	if !slices.Contains([]string{"latest", "session", "cache"}, o.mode) {
		fmt.Fprintln(os.Stderr, "linear: -mode is one of latest, session, cache")
		os.Exit(2)
	}
	result := summary{Mode: o.mode, Seed: o.seed, Outcomes: map[string]int{}, Codes: map[int]int{}}
	if err := run(&o, &result); err != nil {
		fmt.Fprintln(os.Stderr, "linear:", err)
		os.Exit(2)
	}
	_ = json.NewEncoder(os.Stdout).Encode(&result)
	if result.Violations != 0 {
		os.Exit(1)
	}
}

func run(o *options, result *summary) error {
	if o.checks != "" {
		return checkRecorded(o, result)
	}
	began := time.Now()
	end := began.Add(o.length)
	clients := make([]*client, o.clients)
	for i := range clients {
		clients[i] = newClient(o, began, i)
	}
	for round := 0; time.Now().Before(end) || isPoor(result, end); round++ {
		until := end
		if time.Now().After(end) {
			until = time.Now().Add(extra)
		}
		if err := judge(o, result, play(o, clients, round, until)); err != nil {
			return err
		}
	}
	return nil
}

// A machine that is busy, or a server that was away for most of the time, gets some more.
const (
	enough   = 100 // operations that were carried out
	extra    = 5 * time.Second
	extraMax = time.Minute
)

func isPoor(result *summary, end time.Time) bool {
	return result.Outcomes[ok] < enough && time.Since(end) < extraMax
}

// play has all clients go through a round at once.
func play(o *options, clients []*client, round int, end time.Time) []*operation {
	var group sync.WaitGroup
	histories := make([][]*operation, len(clients))
	for i, c := range clients {
		group.Go(func() { histories[i] = c.run(round, plan(o.seed, round, i, o.keys, o.steps), end) })
	}
	group.Wait()
	return slices.Concat(histories...)
}

func checkRecorded(o *options, result *summary) error {
	file, err := os.Open(o.checks)
	if err != nil {
		return err
	}
	defer file.Close()
	history, err := readHistory(file)
	if err != nil {
		return err
	}
	return judge(o, result, history)
}

// judge checks a round, and tells of what is wrong with it.
func judge(o *options, result *summary, history []*operation) error {
	found := check(o.mode, history)
	result.add(history, found)
	for _, violation := range found.violations {
		fmt.Fprintf(os.Stderr, "linear: mode %s, seed %d, round %d: %s\n", o.mode, o.seed, result.Rounds-1, violation)
	}
	if len(found.violations) == 0 || o.record == "" {
		return nil
	}
	file, err := os.Create(o.record)
	if err != nil {
		return err
	}
	defer file.Close()
	return writeHistory(file, history)
}

func (s *summary) add(history []*operation, found *findings) {
	s.Rounds++
	s.Stale += found.stale
	s.Undecided += found.undecided
	s.Violations += len(found.violations)
	for _, o := range history {
		s.Outcomes[o.Outcome]++
		s.Codes[o.Code]++
		if o.isRead() && (o.Outcome == ok || o.Outcome == absent) {
			if o.Passed {
				s.Passed++
			} else {
				s.Cached++
			}
		}
	}
}
