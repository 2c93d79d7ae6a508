package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/console"
	"github.com/swagwrap/swagwrap/cmd/swagwrap/internal/flags"
	"github.com/swagwrap/swagwrap/internal/open"
	"github.com/swagwrap/swagwrap/internal/reference"
	"github.com/swagwrap/swagwrap/onnxio"
)

// outputsName is the hidden command that runs an exported model on a few examples.
const outputsName = "outputs"

// An outputsRequest goes to the hidden command through standard input, as JSON.
type outputsRequest struct {
	Name   string // of the model in messages
	Of     open.OutputsOf
	Verify bool // run the examples that the model has inside: the reply has the messages
}

// An outputsReply comes back as the last line of standard output: what ONNX Runtime loads may print there, too.
type outputsReply struct {
	Stored *reference.Stored
	Why    string // there are none, or ""

	messages string // on standard error
}

func outputsCommand(a *app) *command {
	how := open.RuntimeOptions{}
	return &command{
		name:  outputsName,
		usage: "run an exported model on a few examples: export and doctor start this",
		args:  "MODEL",
		Table: flags.Run(&how, &open.DataOptions{}),
		run: func(ctx context.Context, args []string) error {
			var asked outputsRequest
			if len(args) != 1 || json.NewDecoder(os.Stdin).Decode(&asked) != nil {
				return console.Usagef("swagwrap doctor MODEL verifies a model", "%s: export and doctor start this command", outputsName)
			}
			var reply outputsReply
			why, err := error(nil), error(nil)
			if asked.Verify {
				err = open.VerifyModel(ctx, a.Opener, how, args[0])
			} else if reply.Stored, why, err = asked.here(ctx, a, how, args[0]); why != nil {
				reply.Why = why.Error()
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout) // ends a line that ONNX Runtime began
			return json.NewEncoder(a.Stdout).Encode(reply)
		},
	}
}

// here runs the complete model at a path in this process.
func (r outputsRequest) here(ctx context.Context, a *app, how open.RuntimeOptions, path string) (s *reference.Stored, why, err error) {
	engine, err := a.Engine(how)
	if err != nil {
		return nil, nil, err
	}
	m, err := onnxio.Open(path)
	if err != nil {
		return nil, nil, console.BadInput(err)
	}
	m.Path = r.Name
	s, why, err = r.Of.Outputs(ctx, engine.Runtime(), m)
	return s, why, errors.Join(err, m.Close()) // it must not be open when it is written
}

// elsewhere runs the complete model at a path in a process of its own: some models end the process that runs ONNX Runtime. words are flags
// of the runtime. It returns nil if that process ends in order without outputs: run here, the model gives an error of the right kind.
func (r outputsRequest) elsewhere(ctx context.Context, words []string, path string, hints ...string) (*outputsReply, error) {
	request, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, self, slices.Concat([]string{outputsName}, words, []string{"--", path})...)
	child.Args[0] = "swagwrap"
	var printed, messages bytes.Buffer
	child.Stdin, child.Stdout, child.Stderr = bytes.NewReader(request), &printed, &messages
	err = child.Run()
	reply, end := &outputsReply{messages: messages.String()}, howEnded(child.ProcessState, messages.String())
	lines := bytes.Split(bytes.TrimSpace(printed.Bytes()), []byte("\n"))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && json.Unmarshal(lines[len(lines)-1], reply) == nil && (r.Verify || reply.Stored != nil || reply.Why != ""):
		return reply, nil
	case end == "":
		return nil, nil
	}
	err = fmt.Errorf("%s: ONNX Runtime ended its process when it ran the model: %s", r.Name, end)
	if strings.HasPrefix(end, "SIGKILL") { // not a fault of the model
		return nil, console.Retry(err, "the system ends a process so if memory is short: --memory SIZE and --threads N need less")
	}
	return nil, console.BadInput(err,
		append(hints, "--ort-lib FILE takes another ONNX Runtime; `swagwrap doctor` shows which one is used")...)
}

// goSignal matches the signal for which Go's runtime ended a process with exit code 2, and anError a command's own end.
var goSignal, anError = regexp.MustCompile(`(?m)^(?:\[signal )?(SIG[A-Z]+): `), regexp.MustCompile(`(?m)^error: `)

// howEnded names the signal or the exit code of a process that a fault ended, and its first message. It returns "" if the process ended
// with an error, or did not start.
func howEnded(p *os.ProcessState, messages string) (end string) {
	if p == nil {
		return ""
	}
	if m := goSignal.FindStringSubmatch(messages); m != nil {
		end = m[1]
	} else if status := p.Sys().(syscall.WaitStatus); status.Signaled() {
		end = unix.SignalName(status.Signal())
	} else if end = fmt.Sprintf("exit code %d", p.ExitCode()); anError.MatchString(messages) {
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(messages), "\n")
	if goSignal.MatchString(first) {
		first = ""
	}
	return join(", ", end, first)
}

// runtimeFlags are those of the hidden command.
var runtimeFlags = []string{"ort-lib", "provider", "device", "precision", "batch-size", "threads", "memory"}

// outputs runs the complete model at a path on a few examples.
func (o *exportOptions) outputs(ctx context.Context, path string, asked outputsRequest) (s *reference.Stored, why, err error) {
	var hints []string
	if o.converts() {
		hints = []string{"without --dtype and --quantize the members compute in float32"}
	}
	switch reply, err := asked.elsewhere(ctx, o.Words(runtimeFlags...), path, hints...); {
	case err != nil:
		return nil, nil, err
	case reply == nil:
		return asked.here(ctx, o.app, o.runtime, path)
	case reply.Why != "":
		return nil, errors.New(reply.Why), nil
	default:
		return reply.Stored, nil, nil
	}
}
