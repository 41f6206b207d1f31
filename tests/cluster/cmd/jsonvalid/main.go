// Command jsonvalid says which byte strings are JSON: the oracle that the project's own scanner is
// compared with. It reads records, each a length of four bytes in little-endian order and that many
// bytes, from the file named or from standard input, and writes for each '1' or '0' to standard
// output: json.Valid and utf8.Valid. encoding/json gives up on nesting deeper than 10,000.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

const maxRecord = 1 << 30

func verdict(record []byte) byte {
	if utf8.Valid(record) && json.Valid(record) {
		return '1'
	}
	return '0'
}

// next reads one record into buf, grown as needed. io.EOF means a clean end.
func next(in io.Reader, buf []byte) ([]byte, error) {
	var size uint32
	if err := binary.Read(in, binary.LittleEndian, &size); err != nil {
		return nil, err
	}
	if size > maxRecord {
		return nil, fmt.Errorf("record of %d bytes, at most %d are allowed", size, maxRecord)
	}
	if uint32(cap(buf)) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if _, err := io.ReadFull(in, buf); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return buf, nil
}

func judge(in io.Reader, out *bufio.Writer) error {
	var buf []byte
	for n := 0; ; n++ {
		record, err := next(in, buf)
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", n, err)
		}
		if err := out.WriteByte(verdict(record)); err != nil {
			return err
		}
		buf = record
	}
}

func run(args []string) error {
	in := os.Stdin
	switch len(args) {
	case 0:
	case 1:
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	default:
		return errors.New("usage: jsonvalid [FILE]")
	}
	return judge(bufio.NewReaderSize(in, 1<<20), bufio.NewWriter(os.Stdout))
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "jsonvalid:", err)
		os.Exit(1)
	}
}
