package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// For one question to porcupine, of which the usual takes a millisecond.
const (
	decisionLimit = 20 * time.Second
	countingLimit = 200 * time.Millisecond // where the answer is only counted
)

// findings is what became of a check.
type findings struct {
	violations []string
	undecided  int // questions that porcupine had no time for
	stale      int // reads of a client that a session would not have had, by clients and keys
}

func (f *findings) add(format string, args ...any) {
	f.violations = append(f.violations, fmt.Sprintf(format, args...))
}

// check holds the history of one round to what a mode promises.
//
//	latest   all operations are linearizable
//	session  the writes and what any one client reads of the cache are: it sees what was answered before, and never goes
//	         back. So are the writes and all reads that went on to the API server; and from these to the cache no version
//	         goes back.
//	cache    the writes are, and the reads of any one client never go back
func check(mode string, history []*operation) *findings {
	f := &findings{}
	values := checkValues(f, history)
	checkLists(f, history)
	history = resolve(history, values)
	for _, key := range keysOf(history) {
		writes, reads := split(history, key)
		f.linearizable(key, "writes", writes)
		switch mode {
		case "latest":
			f.linearizable(key, "writes and reads", slices.Concat(writes, reads))
		case "session":
			f.checkSession(key, writes, reads)
		case "cache":
			f.checkCache(key, writes, reads)
		}
	}
	if mode == "cache" {
		checkOneCache(f, history)
	}
	return f
}

func (f *findings) checkSession(key string, writes, reads []*operation) {
	isPassed := func(o *operation) bool { return o.Passed }
	isCached := func(o *operation) bool { return !o.Passed }
	passed := slices.DeleteFunc(slices.Clone(reads), isCached)
	f.linearizable(key, "writes and reads that were passed on", slices.Concat(writes, passed))
	for _, own := range byClient(reads) {
		checkRising(f, key, own)
	}
	awaited := awaited(writes)
	for client, own := range byClient(slices.DeleteFunc(slices.Clone(reads), isPassed)) {
		f.linearizable(key, fmt.Sprintf("the writes, and the reads of client %d,", client), slices.Concat(awaited, own))
	}
}

func (f *findings) checkCache(key string, writes, reads []*operation) {
	awaited := awaited(writes)
	for _, own := range byClient(reads) {
		if decide(key, slices.Concat(awaited, own), countingLimit) == porcupine.Illegal {
			f.stale++
		}
		checkRising(f, key, own)
		checkGone(f, key, own)
	}
}

// awaited are the writes that a session waits for, each from its answer on: none that was refused, whatever that says of
// others, and no deletion of what may have been created by a write whose answer had not come.
func awaited(writes []*operation) []*operation {
	var all []*operation
	for _, o := range writes {
		if o.Outcome != ok && o.Outcome != unknown {
			continue
		}
		isOpen := func(c *operation) bool {
			return c.Kind == "create" && c.Call < o.Return && (c.isLost || c.Return > o.Call)
		}
		if o.Kind == "delete" && slices.ContainsFunc(writes, isOpen) {
			late := *o
			late.Return = math.MaxInt64
			o = &late
		}
		all = append(all, o)
	}
	return all
}

func keysOf(history []*operation) []string {
	keys := map[string]bool{}
	for _, o := range history {
		if o.Key != "" {
			keys[o.Key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// split leaves out what says nothing of the key.
func split(history []*operation, key string) (writes, reads []*operation) {
	for _, o := range history {
		switch {
		case !o.concerns(key) || o.Outcome == refused || (o.isRead() && o.Outcome == unknown):
		case o.isRead():
			reads = append(reads, o)
		default:
			writes = append(writes, o)
		}
	}
	return writes, reads
}

func byClient(history []*operation) map[int][]*operation {
	clients := map[int][]*operation{}
	for _, o := range history {
		clients[o.Client] = append(clients[o.Client], o)
	}
	return clients
}

// --- what porcupine is asked ---

// register is the state of one key. Whether its version is known: it is not behind a write without an answer that
// nobody saw, and then it is above `version`.
type register struct {
	value   string // "": there is no object
	version uint64
	known   bool
}

var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{register{}} },
	Step: func(state, input, output any) []any {
		return next(state.(register), input.(string), output.(*operation))
	},
}).ToModel()

func next(r register, key string, o *operation) []any {
	stays, goes := []any{r}, []any(nil)
	is := func(holds bool) []any {
		if holds {
			return stays
		}
		return goes
	}
	there := r.value != ""
	matches := o.If == 0 || (r.known && r.version == o.If)
	switch {
	case o.isRead():
		found, has := o.Objects[key]
		return is(has == there && (!has || (found.Value == r.value && r.known && found.Version == r.version)))
	case o.Outcome == absent:
		return is(!there)
	case o.Outcome == exists:
		return is(there)
	case o.Outcome == conflict:
		return is(there && !matches)
	}
	if there == (o.Kind == "create") || !matches {
		return is(o.Outcome == unknown)
	}
	changed := written(r, key, o)
	if o.Outcome == unknown {
		return []any{r, changed}
	}
	if o.Kind != "delete" && changed.version <= r.version {
		return goes
	}
	return []any{changed}
}

// written is the state behind a write that was carried out.
func written(r register, key string, o *operation) register {
	if o.Kind == "delete" {
		return register{version: r.version}
	}
	if found, has := o.Objects[key]; has {
		return register{o.Value, found.Version, true}
	}
	return register{o.Value, r.version, false}
}

// resolve gives writes without an answer the one that others saw: who has seen their value knows that they were carried
// out, and until when. What nobody saw may be carried out at any time, or never.
func resolve(history []*operation, values map[string]sight) []*operation {
	resolved := make([]*operation, len(history))
	for i, o := range history {
		resolved[i] = o
		if o.isRead() || o.Outcome != unknown {
			continue
		}
		known := *o
		known.Return, known.isLost = math.MaxInt64, true
		if s, has := values[o.Value]; has && o.Value != "" {
			known.Outcome, known.Return = ok, max(o.Call, s.first)
			known.Objects = map[string]object{o.Key: s.object}
		}
		resolved[i] = &known
	}
	return resolved
}

func decide(key string, history []*operation, limit time.Duration) porcupine.CheckResult {
	operations := make([]porcupine.Operation, len(history))
	for i, o := range history {
		operations[i] = porcupine.Operation{ClientId: o.Client, Input: key, Output: o, Call: o.Call, Return: o.Return}
	}
	return porcupine.CheckOperationsTimeout(model, operations, limit)
}

func (f *findings) linearizable(key, who string, history []*operation) {
	switch decide(key, history, decisionLimit) {
	case porcupine.Unknown:
		f.undecided++
	case porcupine.Illegal:
		f.add("%s: %s are not linearizable:\n%s", key, who, text(shrink(key, history)))
	}
}

const shownMax = 16

// shrink leaves what is needed for the contradiction: operations up to it, and of the reads as few as possible.
func shrink(key string, history []*operation) []*operation {
	slices.SortFunc(history, func(a, b *operation) int { return cmp.Compare(a.Call, b.Call) })
	history = firstBad(key, history)
	for i := len(history) - 1; i >= 0; i-- {
		less := slices.Delete(slices.Clone(history), i, i+1)
		if history[i].isRead() && decide(key, less, decisionLimit) == porcupine.Illegal {
			history = less
		}
	}
	return history[max(0, len(history)-shownMax):]
}

// firstBad is the history up to the answer with which the contradiction is there.
func firstBad(key string, history []*operation) []*operation {
	ends := make([]int64, len(history))
	for i, o := range history {
		ends[i] = o.Return
	}
	slices.Sort(ends)
	for _, end := range ends {
		if so := upTo(history, end); decide(key, so, decisionLimit) == porcupine.Illegal {
			return so
		}
	}
	return history
}

// upTo is what is known at a time: of operations that are under way then, those that may have changed something.
func upTo(history []*operation, end int64) []*operation {
	var so []*operation
	for _, o := range history {
		mayShow := !o.isRead() && (o.Outcome == ok || o.Outcome == unknown)
		if o.Call <= end && (o.Return <= end || mayShow) {
			so = append(so, o)
		}
	}
	return so
}

func text(history []*operation) string {
	lines := make([]string, len(history))
	for i, o := range history {
		lines[i] = "    " + o.String()
	}
	return strings.Join(lines, "\n")
}

// --- what needs no search ---

// sight is who was told a value first.
type sight struct {
	object
	first int64
	by    *operation
}

// checkValues: each value is one state of one key, written by the client that says so, and carried out.
func checkValues(f *findings, history []*operation) map[string]sight {
	written, values := map[string]*operation{}, map[string]sight{}
	for _, o := range history {
		if o.Value != "" {
			written[o.Value] = o
		}
	}
	for _, o := range history {
		for key, found := range o.Objects {
			w := written[found.Value]
			if w == nil || w.Key != key {
				f.add("%s has a value that nobody wrote:\n%s", key, text([]*operation{o}))
				continue
			}
			if w.Outcome != ok && w.Outcome != unknown {
				f.add("%s has the value of a write that was refused:\n%s", key, text([]*operation{w, o}))
			}
			before, has := values[found.Value]
			if has && before.object != found {
				f.add("%s has one value in two versions:\n%s", key, text([]*operation{before.by, o}))
			}
			if !has || o.Return < before.first {
				values[found.Value] = sight{found, o.Return, o}
			}
		}
	}
	return values
}

// checkLists: a list is one version. It has of each object the newest of the versions up to its own.
func checkLists(f *findings, history []*operation) {
	versions := map[string][]uint64{} // by key and uid
	for _, o := range history {
		for key, found := range o.Objects {
			versions[key+" "+found.UID] = append(versions[key+" "+found.UID], found.Version)
		}
	}
	for _, o := range history {
		if o.Kind != "list" || o.Outcome != ok {
			continue
		}
		for of, known := range versions {
			key, uid, _ := strings.Cut(of, " ")
			found, has := o.Objects[key]
			has = has && found.UID == uid
			newest := uint64(0)
			for _, version := range known {
				if version <= o.Version {
					newest = max(newest, version)
				}
			}
			switch {
			case has && (found.Version > o.Version || found.Version < newest):
				f.add("a list is not of one version, %s was at %d:\n%s", key, newest, text([]*operation{o}))
			case !has && newest != 0 && slices.Max(known) > o.Version:
				f.add("a list lacks %s, which was there from %d to %d:\n%s", key, newest, slices.Max(known),
					text([]*operation{o}))
			}
		}
	}
}

// checkRising: what one client reads of a key never goes back. `reads` are in their order.
func checkRising(f *findings, key string, reads []*operation) {
	var last *operation
	for _, o := range reads {
		found, has := o.Objects[key]
		if has && last != nil && found.Version < last.Objects[key].Version {
			f.add("%s goes back for client %d:\n%s", key, o.Client, text([]*operation{last, o}))
		}
		if has {
			last = o
		}
	}
}

// checkGone: nor does what one client saw to be gone come back as it was.
func checkGone(f *findings, key string, reads []*operation) {
	var last, gone *operation // the last that had an object, and the last behind it that had none
	for _, o := range reads {
		found, has := o.Objects[key]
		if !has {
			gone = o
			continue
		}
		if last != nil && gone != nil && found.Version == last.Objects[key].Version {
			f.add("%s comes back for client %d:\n%s", key, o.Client, text([]*operation{last, gone, o}))
		}
		last, gone = o, nil
	}
}

// checkOneCache: all that is read by one client comes from a cache that moves on, so that no list is of a version below
// what was read before.
func checkOneCache(f *findings, history []*operation) {
	for _, own := range byClient(history) {
		var newest uint64
		var by *operation
		for _, o := range own {
			if !o.isRead() || o.Outcome != ok {
				continue
			}
			if o.Kind == "list" && o.Version < newest {
				f.add("a list is older than what client %d had read:\n%s", o.Client, text([]*operation{by, o}))
			}
			version := o.Version
			for _, found := range o.Objects {
				version = max(version, found.Version)
			}
			if version > newest {
				newest, by = version, o
			}
		}
	}
}
