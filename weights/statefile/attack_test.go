package statefile

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swagwrap/swagwrap/fixtures/reliability"
)

// Pieces of pickles, as Python's pickler writes them.

func str(s string) string { return "X" + le32(len(s)) + s }

func num(n int64) string {
	return "\x8a\x08" + string(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func nums(n ...int64) string {
	s := "("
	for _, v := range n {
		s += num(v)
	}
	return s + "t"
}

func name(module, name string) string { return "c" + module + "\n" + name + "\n" }

func group(items ...string) string { return "(" + strings.Join(items, "") + "t" }

func items(kv ...string) string { return "}(" + strings.Join(kv, "") + "u" }

func call(callee string, args ...string) string { return callee + group(args...) + "R" }

func storage(class, key string, numel int64) string {
	return group(str("storage"), name("torch", class), str(key), str("cpu"), num(numel)) + "Q"
}

func rebuilt(storage string, offset int64, shape, strides string) string {
	return call(name("torch._utils", "_rebuild_tensor_v2"), storage, num(offset), shape, strides, "\x89", call(name("collections", "OrderedDict")))
}

func le32(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }

// weight is a good tensor of two floats in the storage that zipped adds.
var weight = rebuilt(storage("FloatStorage", "0", 2), 0, nums(2), nums(1))

// module is an nn.Module of a class of its own.
func module(parameters, modules string) string {
	return name("__main__", "Net") + ")\x81" + items(str("_parameters"), parameters, str("_buffers"), "}", str("_modules"), modules) + "b"
}

// zipped returns a checkpoint with the pickle and the entries, each a name and
// its content.
func zipped(pickle string, entries ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i, e := 0, append([]string{"a/data.pkl", "\x80\x02" + pickle + ".", "a/data/0", "\x00\x00\x80\x3f\x00\x00\x00\x40"}, entries...); i+1 < len(e); i += 2 {
		h := &zip.FileHeader{Name: e[i], CRC32: crc32.ChecksumIEEE([]byte(e[i+1])), CompressedSize64: uint64(len(e[i+1])), UncompressedSize64: uint64(len(e[i+1]))}
		w, err := z.CreateRaw(h)
		if err == nil {
			_, err = w.Write([]byte(e[i+1]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// use opens the file and reads all that it has, as swagwrap would.
func use(data []byte) error {
	f, err := Parse("f.pt", data)
	if err != nil {
		return err
	}
	for _, sd := range f.StateDicts() {
		if sd.Err() != nil {
			err = sd.Err()
			continue
		}
		for _, t := range sd.Tensors {
			t.Bytes()
		}
		for _, g := range sd.Ignored {
			if g.Tensor != nil {
				g.Tensor.Bytes()
			}
		}
	}
	return err
}

// wantRefused checks that using the file is an error with its path and words.
func wantRefused(t *testing.T, what string, data []byte, words ...string) {
	t.Helper()
	err := use(data)
	if err == nil {
		t.Errorf("%s: no error, want %q", what, words)
		return
	}
	var e *Error
	for _, w := range words {
		if !errors.As(err, &e) || e.Path != "f.pt" || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: error %q, want %q", what, err, w)
		}
	}
}

// within checks what f allocates against the guarantee for a file of this size.
func within(t *testing.T, what string, size int, f func()) {
	t.Helper()
	t.Run(what, func(t *testing.T) { reliability.Heap(t, size, f) })
}

// The assembled files are what the attacks below differ from in one thing.
func TestAssembled(t *testing.T) {
	for what, root := range map[string]string{"dict": items(str("w"), weight), "module": module(items(str("w"), weight), "}")} {
		f, err := Parse("f.pt", zipped(root))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if sd := f.StateDicts()[0]; len(sd.Tensors) != 1 || sd.Tensors[0].Name != "w" || !bytes.Equal(sd.Tensors[0].Bytes(), []byte("\x00\x00\x80\x3f\x00\x00\x00\x40")) {
			t.Errorf("%s: %+v", what, sd)
		}
	}
}

// Pickles that in Python would run a command: none is run, and where there are
// weights beside them they are read. One of them Python made.
func TestAttackRunsCode(t *testing.T) {
	sentinel := filepath.Join(t.TempDir(), "pwned")
	command := "touch '" + sentinel + "'"
	if strings.ContainsAny(sentinel, "\n'") {
		t.Fatal(sentinel)
	}
	for what, attack := range map[string]string{
		"os.system":       call(name("os", "system"), str(command)),
		"posix.system":    call(name("posix", "system"), str(command)),
		"subprocess":      call(name("subprocess", "check_output"), "]("+str("touch")+str(sentinel)+"e"),
		"stack global":    str("os") + str("system") + "\x93" + group(str(command)) + "R",
		"new object":      name("os", "system") + group(str(command)) + "\x81",
		"new object ex":   name("os", "system") + group(str(command)) + "}\x92",
		"builtins.eval":   call(name("builtins", "eval"), str("__import__('os').system('''"+command+"''')")),
		"builtins.exec":   call(name("__builtin__", "exec"), str("open('''"+sentinel+"''', 'w')")),
		"open":            call(name("io", "open"), str(sentinel), str("w")),
		"getattr":         call(call(name("builtins", "getattr"), name("os", "x"), str("system")), str(command)),
		"setstate":        name("torch.nn", "Linear") + ")\x81" + items(str("__setstate__"), name("os", "system")) + "b" + str(command) + "b",
		"persistent":      group(str("module"), name("os", "system"), str(command), str("import os")) + "Q",
		"rebuilds by one": call(name("torch._tensor", "_rebuild_from_type_v2"), name("os", "system"), name("torch", "Tensor"), group(str(command)), "}"),
	} {
		for where, root := range map[string]string{"alone": attack, "beside": items(str("x"), attack, str("w"), weight), "key": items(attack, weight, str("w"), weight)} {
			err := use(zipped(root))
			if beside := where != "alone" && (what != "rebuilds by one" || where == "key"); beside != (err == nil) {
				t.Errorf("%s, %s: %v", what, where, err)
			}
		}
		use([]byte("\x80\x02" + attack + "."))
	}
	for what, attack := range map[string]string{"inst": "(" + str(command) + "ios\nsystem\n", "extension": "\x82\x01" + group(str(command)) + "R"} {
		wantRefused(t, what, zipped(attack), "opcode 0x") // torch.save never writes these operations
	}
	f, err := Open("testdata/never-run.pt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, path := range []string{sentinel, "pwned", "testdata/pwned"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: a command was run", path)
		}
	}
}

func TestAttackNesting(t *testing.T) {
	nest := func(open, inner, end string) string {
		deep := 800_000
		if len(open) > 1 {
			deep = 20_000
		}
		return strings.Repeat(open, deep) + inner + strings.Repeat(end, deep)
	}
	for what, root := range map[string]string{
		"lists":      nest("]", "", "a"),
		"tuples":     nest("", ")", "\x85"),
		"dicts":      nest("}", "", "NNs"),
		"calls":      nest(name("a", "b"), ")", "\x85R"),
		"parameters": nest(name("torch._utils", "_rebuild_parameter"), weight, "\x85R"),
		"modules":    nest("cm\nN\n)\x81}(\x8c\x0b_parameters}\x8c\x08_modules}\x8c\x01m", "N", "sub"),
	} {
		data := zipped(items(str("w"), weight, str("x"), root))
		within(t, what, len(data), func() { use(data) })
	}
	modules := "N"
	for range maxDepth + 2 {
		modules = module(items(str("w"), weight), items(str("m"), modules))
	}
	wantRefused(t, "modules with weights", zipped(modules), "nest deeper than 200")
}

// Memo entries without number, and values that hold one another so often that
// to write them out would take forever.
func TestAttackMemo(t *testing.T) {
	wantRefused(t, "a large index", zipped("Nr\xff\xff\xff\xff"), "memo index 4294967295")
	wantRefused(t, "an index never put", zipped("h\x07"), "memo index 7: never put")
	wantRefused(t, "an index in a hole", zipped("]]]]]]]]Nq\x05h\x04"), "memo index 4: never put")

	laughs := func(first string, next func(level int) string) string {
		root := first + "q\x00"
		for level := range 40 {
			root += next(level) + "q" + string(rune(level+1))
		}
		return root
	}
	twice := func(level int) string { return "h" + string(rune(level)) }
	for what, root := range map[string]string{
		"dicts": laughs(items(str("w"), weight), func(l int) string { return items(str("a"), twice(l), str("b"), twice(l)) }),
		"wide":  laughs(items(str("w"), weight), func(l int) string { return "}(" + strings.Repeat(str("k")+twice(l), 5000) + "u" }),
		"modules": laughs(module(items(str("w"), weight), "}"), func(l int) string {
			return module("}", items(str("a"), twice(l), str("b"), twice(l)))
		}),
		"empty modules":    laughs(module("}", "}"), func(l int) string { return module("}", items(str("a"), twice(l), str("b"), twice(l))) }),
		"lists":            laughs(items(str("w"), weight), func(l int) string { return "](" + twice(l) + twice(l) + "e" }),
		"itself":           "}q\x00(" + str("x") + "h\x00" + str("w") + weight + "u",
		"module in itself": name("m", "N") + ")\x81q\x00" + items(str("_parameters"), items(str("w"), weight), str("_modules"), items(str("m"), "h\x00")) + "b",
	} {
		data := zipped(root)
		within(t, what, len(data), func() { use(data) })
	}
}

// Files of half a megabyte that are all items, the cheapest of each kind.
func TestAttackItems(t *testing.T) {
	const n = 1 << 19
	for what, piece := range map[string]string{
		"tuples": "N\x85", "copies": "2", "texts": "\x8c\x00", "memoized": "]\x94", "objects": "N)R", "references": "NQ",
	} {
		data := zipped("N" + strings.Repeat(piece, n/len(piece)) + "K\x01")
		within(t, what, len(data), func() { use(data) })
	}
	many := func(item func(i int) string) string {
		var b strings.Builder
		b.WriteString("}(")
		for i := 0; b.Len() < n/2; i++ {
			b.WriteString(item(i))
		}
		return b.String() + "u"
	}
	w := weight + "q\x010" // memoized, so that a name and two bytes are a tensor
	for what, root := range map[string]string{
		"tensors":    w + many(func(i int) string { return fmt.Sprintf("\x8c\x05%05dh\x01", i%100000) }),
		"parameters": w + module(many(func(i int) string { return fmt.Sprintf("\x8c\x05%05dh\x01", i%100000) }), "}"),
		"hidden":     w + module(items(str("w"), "h\x01"), "}") + items(str("_non_persistent_buffers_set"), "("+strings.Repeat("\x8c\x01a", n/6)+"\x91") + "b",
	} {
		data := zipped(root)
		within(t, what, len(data), func() { use(data) })
	}
	legacy := "\x80\x02\x8a\x0a" + string(legacyMagic) + ".\x80\x02M\xe9\x03.\x80\x02N.\x80\x02" + items(str("w"), weight) + ".\x80\x02"
	wantRefused(t, "keys", []byte(legacy+"]("+strings.Repeat("\x8c\x01a", n/3)+"e."), `storage "a": no tensor has it`)
	wantRefused(t, "a key twice", []byte(legacy+"]("+str("0")+str("0")+"e."+"\x00\x00\x00\x00\x00\x00\x00\x00"), `storage "0": listed twice`)
}

func TestAttackLengths(t *testing.T) {
	for what, pickle := range map[string]string{
		"text":      "X\xff\xff\xff\xff",
		"text8":     "\x8d\xff\xff\xff\xff\xff\xff\xff\xff",
		"text8 max": "\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
		"bytes8":    "\x8e\x00\x00\x00\x00\x01\x00\x00\x00",
		"bytearray": "\x96\x00\x00\x00\x00\x01\x00\x00\x00",
		"long4":     "\x8b\xff\xff\xff\x7f",
		"frame":     "\x95\xff\xff\xff",
		"line":      "cos",
		"nothing":   "",
	} {
		f := zipped(pickle)
		err := use(f)
		if err == nil || !strings.HasPrefix(err.Error(), "f.pt: data.pkl: pickle, byte ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, root := range map[string]string{
		"no mark": "t", "empty": "R", "below a mark": "N(a", "half a pair": "}(Nu", "no dict": "K\x01(NNu", "no list": "NNa", "a state": "NNb",
		"no text": "NN\x93", "unknown": "\xff", "protocol": "\x80\x09", "quotes": "Sx\n", "buffer": "\x97", "real": "Fx\n",
	} {
		wantRefused(t, what, zipped(root), "data.pkl: pickle, byte ")
	}
	wantRefused(t, "name", zipped(name(strings.Repeat("m", 1<<20), "x")), "a name of 1048576 bytes")
}

// Tensors that claim what their storage does not have.
func TestAttackTensors(t *testing.T) {
	const most = math.MaxInt64
	two := storage("FloatStorage", "0", 2)
	dims := make([]int64, 65)
	for what, tt := range map[string]struct{ tensor, words string }{
		"storage larger than the file":  {rebuilt(storage("FloatStorage", "0", 1<<40), 0, nums(2), nums(1)), "has 8 bytes, want 1099511627776 elements of 4"},
		"storage of the largest number": {rebuilt(storage("DoubleStorage", "0", most), 0, nums(2), nums(1)), "has 8 bytes"},
		"storage below 0":               {rebuilt(storage("FloatStorage", "0", -1), 0, nums(2), nums(1)), "not one of PyTorch's"},
		"storage that is missing":       {rebuilt(storage("FloatStorage", "7", 2), 0, nums(2), nums(1)), `storage "7" is not in the file`},
		"storage of an unknown class":   {rebuilt(storage("EvilStorage", "0", 2), 0, nums(2), nums(1)), "not one of PyTorch's: the name torch.EvilStorage"},
		"shape larger than storage":     {rebuilt(two, 0, nums(3), nums(1)), "beyond its storage of 2"},
		"offset and shape":              {rebuilt(two, 1, nums(2), nums(1)), "beyond its storage of 2"},
		"offset at the end":             {rebuilt(two, 2, nums(), nums()), "begins at element 2"},
		"offset below 0":                {rebuilt(two, -1, nums(2), nums(1)), "begins at element -1"},
		"offset of the largest number":  {rebuilt(two, most, nums(2), nums(1)), "begins at element"},
		"negative stride":               {rebuilt(two, 1, nums(2), nums(-1)), "want none below 0"},
		"smallest stride":               {rebuilt(two, 1, nums(1), nums(math.MinInt64)), "want none below 0"},
		"stride of the largest number":  {rebuilt(two, 0, nums(2), nums(most)), "beyond its storage"},
		"strides that overflow":         {rebuilt(two, 0, nums(5, 5), nums(most/2, most/2)), "beyond its storage"},
		"strides that add up":           {rebuilt(two, 0, nums(2, 2), nums(1, 1)), "beyond its storage"},
		"negative dimension":            {rebuilt(two, 0, nums(-2), nums(1)), "negative dimension"},
		"shape that overflows":          {rebuilt(two, 0, nums(1<<32, 1<<32), nums(0, 0)), "too many elements"},
		"repeated elements":             {rebuilt(two, 0, nums(1<<40), nums(0)), "elements over a storage of 2"},
		"more strides than dimensions":  {rebuilt(two, 0, nums(2), nums(1, 1)), "2 strides"},
		"more dimensions than PyTorch":  {rebuilt(two, 0, nums(dims...), nums(dims...)), "no integers"},
		"shape of texts":                {rebuilt(two, 0, group(str("2")), nums(1)), "no integers"},
		"no shape":                      {rebuilt(two, 0, "N", "N"), "no integers"},
		"no storage":                    {rebuilt("N", 0, nums(2), nums(1)), "without a storage"},
		"nothing":                       {call(name("torch._utils", "_rebuild_tensor_v2")), "without a storage"},
		"another rebuild":               {call(name("torch._utils", "_rebuild_future"), two), "_rebuild_future, which swagwrap does not know"},
		"of no dtype":                   {call(name("torch._utils", "_rebuild_tensor_v3"), storage("UntypedStorage", "0", 8), num(0), nums(2), nums(1), "\x89", "N", name("torch", "float3")), "torch.float3"},
		"wrapped for ever":              {strings.Repeat(name("torch._utils", "_rebuild_parameter"), 10) + weight + strings.Repeat("\x85R", 10), "wrapped more than 8 times"},
	} {
		wantRefused(t, what, zipped(items(str("good"), weight, str("w"), tt.tensor)), `tensor "w": `, tt.words)
	}
	wantRefused(t, "a name twice", zipped(items(str("w"), weight, str("w"), weight)), `tensor "w": listed twice`)

	// The same in an optimizer hurts nobody.
	bad := rebuilt(two, 0, nums(3), nums(1))
	if err := use(zipped(items(str("model"), items(str("w"), weight), str("optimizer"), items(str("w"), bad)))); err != nil {
		t.Error(err)
	}
}

func TestAttackZip(t *testing.T) {
	good := zipped(items(str("w"), weight))
	if err := use(good); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, "duplicate entries", zipped(items(str("w"), weight), "a/data/0", "evil"), `entry "a/data/0": listed twice`)
	wantRefused(t, "two pickles", zipped(items(str("w"), weight), "b/data.pkl", "\x80\x02N."), "2 entries data.pkl")
	wantRefused(t, "byte order", zipped(items(str("w"), weight), "a/byteorder", "middle"), `byteorder "middle"`)

	// central changes a field of the n-th entry of the directory.
	central := func(n, field int, value ...byte) []byte {
		data := bytes.Clone(good)
		at := -1
		for range n + 1 {
			at += 1 + bytes.Index(data[at+1:], []byte("PK\x01\x02"))
		}
		copy(data[at+field:], value)
		return data
	}
	second := bytes.Index(good[1:], []byte("PK\x03\x04")) + 1
	wantRefused(t, "overlap", central(1, 42, 0, 0, 0, 0), "share bytes")
	wantRefused(t, "overlap by length", central(0, 20, append([]byte(le32(second)), le32(second)...)...), "share bytes")
	wantRefused(t, "offset", central(1, 42, 0xf0, 0xff, 0xff, 0x7f), `entry "a/data/0"`)
	wantRefused(t, "length", central(1, 20, 0xf0, 0xff, 0xff, 0x7f, 0xf0, 0xff, 0xff, 0x7f), "truncated")
	wantRefused(t, "lengths that differ", central(1, 24, 0xf0, 0xff, 0xff, 0x7f), "compressed")
	wantRefused(t, "method", central(1, 10, 8), "compressed")

	var bomb bytes.Buffer
	z := zip.NewWriter(&bomb)
	for _, name := range []string{"a/data.pkl"} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(make([]byte, 70<<20))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	within(t, "bomb", bomb.Len(), func() { wantRefused(t, "bomb", bomb.Bytes(), "compressed") })

	// A directory of entries that all are one.
	entry := good[bytes.Index(good, []byte("PK\x01\x02")):][:46+len("a/data.pkl")]
	for _, n := range []int{200_000} {
		data := bytes.Clone(good[:second])
		from := len(data)
		for i := range n {
			data = append(data, entry...)
			copy(data[len(data)-8:], fmt.Sprintf("%08d", i))
		}
		size := len(data) - from
		data = append(data, "PK\x05\x06\x00\x00\x00\x00"+le32(n)[:2]+le32(n)[:2]+le32(size)+le32(from)+"\x00\x00"...)
		within(t, fmt.Sprint(n, " entries"), len(data), func() { wantRefused(t, "directory", data) })
	}
}

// A name may repeat what wrappers put in front, and a state_dict may have very many
// names: work that grows with their square would take minutes here.
func TestLongNames(t *testing.T) {
	const times, tensors = 1 << 20, 200_000
	f, err := Parse("f.pt", zipped(items(str(strings.Repeat("net.", times)+"weight"), weight)))
	if err != nil {
		t.Fatal(err)
	}
	if sd := f.StateDicts()[0]; sd.Tensors[0].Short != "weight" || len(sd.Prefix) != 4*times {
		t.Errorf("short name %.40q, and a prefix of %d bytes", sd.Tensors[0].Short, len(sd.Prefix))
	}
	sd := &StateDict{}
	for i := range tensors {
		sd.Tensors = append(sd.Tensors, &Tensor{Name: fmt.Sprint("net.", i), Short: fmt.Sprint("net.", i)})
	}
	sd.finish("f.pt")
	for _, x := range sd.Tensors {
		if found, ok := sd.Find(x.Name); !ok || found != x {
			t.Fatalf("%q is not found", x.Name)
		}
	}
}

// Wrong bits are found where the file has a sum of them.
func TestDamaged(t *testing.T) {
	pickle, weight := read(t, "zip.pt"), read(t, "zip.pt")
	pickle[bytes.Index(pickle, []byte("conv.bias"))] ^= 1
	wantRefused(t, "pickle", pickle, "data.pkl: its CRC-32 differs")
	f, err := Parse("f.pt", weight)
	if err != nil {
		t.Fatal(err)
	}
	sd := f.StateDicts()[0]
	if err := sd.Verify(); err != nil {
		t.Error(err)
	}
	if f.Legacy {
		t.Error("a zip file counts as legacy, without checksums")
	}
	if f, err := Parse("f.pth", read(t, "legacy.pth")); err != nil || !f.Legacy {
		t.Errorf("a legacy file: %v", err)
	}
	x, _ := sd.Find("fc.weight")
	x.Bytes()[3] ^= 4
	if err := sd.Verify(); err == nil || err.Error() != `f.pt: tensor "fc.weight": the CRC-32 of its storage differs: the file is damaged` {
		t.Error(err)
	}
}

func TestAttackSafetensors(t *testing.T) {
	header := func(js string) []byte { return append(binary.LittleEndian.AppendUint64(nil, uint64(len(js))), js...) }
	long := bytes.Repeat([]byte(" "), maxHeader+1)
	wantRefused(t, "long header", header("{"+string(long)+"}"), "want at most 8388608")
	var sections, aliases strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&sections, `,"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}`, i)
		fmt.Fprintf(&aliases, `,"a%d":"0"`, i)
	}
	for what, js := range map[string]string{
		"sections": "{" + sections.String()[1:] + "}",
		"aliases":  `{"0":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"__metadata__":{` + aliases.String()[1:] + "}}",
	} {
		data := header(js)
		within(t, what, len(data), func() {
			if err := use(data); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// An index names files of its own folder, and what they hold.
func TestAttackIndex(t *testing.T) {
	dir := t.TempDir()
	index := filepath.Join(dir, "model.safetensors.index.json")
	for js, words := range map[string]string{
		`{"weight_map":{"w":"../up.safetensors"}}`:            `shard "../up.safetensors", want a file in the same folder`,
		`{"weight_map":{"w":"/etc/passwd"}}`:                  "want a file in the same folder",
		`{"weight_map":{"w":".."}}`:                           "want a file in the same folder",
		`{"weight_map":{"w":""}}`:                             "want a file in the same folder",
		`{"weight_map":{"w":"none.bin"}}`:                     "no such file",
		`{"weight_map":{"w":"model.safetensors.index.json"}}`: "a JSON file",
		`{"weight_map":{"x":"w.bin"}}`:                        `tensor "x": not in w.bin`,
		`{"weight_map":3}`:                                    "not an index",
		`{}`:                                                  "holds no state_dict",
		``:                                                    "not an index",
	} {
		for path, data := range map[string][]byte{index: []byte(js), filepath.Join(dir, "w.bin"): zipped(items(str("w"), weight))} {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if f, err := Open(dir); err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, %v, want %q", js, f, err, words)
		}
	}
}

// small are the files that are cut and damaged.
var small = []string{"zip.pt", "legacy.pth", "protocol4.pt", "old-legacy.pth", "plain.safetensors", "views.pt", "unaligned.pt", "lightning.ckpt"}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A file cut anywhere is an error.
func TestAttackTruncated(t *testing.T) {
	for _, name := range small {
		data := read(t, name)
		for n := 0; n < len(data); n += 1 + len(data)/4000*6 {
			var err error
			reliability.Heap(t, n, func() { err = use(data[:n:n]) })
			if err == nil || !strings.HasPrefix(err.Error(), "f.pt: ") {
				t.Errorf("%s cut to %d of %d bytes: %v", name, n, len(data), err)
			}
		}
	}
}

// A file with one wrong bit may be read, if it is a weight's, or is an error.
func TestAttackFlippedBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range small {
		data := read(t, name)
		for i := range data { // or a wrong bit in the pickle is always told by its CRC-32
			if bytes.HasPrefix(data[i:], []byte("PK\x01\x02")) {
				copy(data[i+16:], le32(0))
			}
		}
		for range 10_000/len(small) + 1 {
			i, bit := rng.IntN(len(data)), byte(1)<<rng.IntN(8)
			data[i] ^= bit
			var err error
			reliability.Heap(t, len(data), func() { err = use(data) })
			if err != nil && !strings.HasPrefix(err.Error(), "f.pt: ") {
				t.Errorf("%s, bit %d of byte %d: %v", name, bit, i, err)
			}
			data[i] ^= bit
		}
	}
}
