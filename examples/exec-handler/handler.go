// A handler of kinformerd: it knows all pods, and says how many there are on each node. As handler.py.
//
//	go build -o count-pods examples/exec-handler/handler.go
//	kinformerd --resource pods --exec ./count-pods
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sort"
)

type event struct {
	Type, Key string
	Initial   bool
	Seq       *uint64 // acknowledge: true
	Object    struct {
		Spec struct{ NodeName string }
	}
}

func tell(nodes map[string]string) {
	count := map[string]int{}
	for _, node := range nodes {
		count[node]++
	}
	words := []any{}
	for node, n := range count {
		words = append(words, fmt.Sprintf("%s=%d", node, n))
	}
	sort.Slice(words, func(i, j int) bool { return words[i].(string) < words[j].(string) })
	fmt.Fprintln(os.Stderr, words...)
}

func main() {
	nodes := map[string]string{}
	for lines := json.NewDecoder(os.Stdin); ; {
		var e event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return // kinformerd ends
		} else if err != nil {
			log.Fatal(err)
		}
		switch e.Type {
		case "RESET": // what comes now is everything
			clear(nodes)
		case "ADDED", "MODIFIED":
			nodes[e.Key] = e.Object.Spec.NodeName
		case "DELETED":
			delete(nodes, e.Key)
		}
		if !e.Initial {
			tell(nodes)
		}
		if e.Seq != nil {
			fmt.Printf("{\"ack\":%d}\n", *e.Seq)
		}
	}
}
