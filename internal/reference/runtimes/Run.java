import ai.onnxruntime.*;
import java.nio.*;
import java.nio.file.*;
import java.util.*;

/** Runs a model in ONNX Runtime for Java. The argument is a file that says what to run: internal/reference/elsewhere.go. */
public class Run {
    static final Map<String, OnnxJavaType> TYPES = Map.of("float32", OnnxJavaType.FLOAT, "float64", OnnxJavaType.DOUBLE, "float16", OnnxJavaType.FLOAT16,
        "int64", OnnxJavaType.INT64, "int32", OnnxJavaType.INT32, "uint8", OnnxJavaType.UINT8, "bool", OnnxJavaType.BOOL);

    public static void main(String[] args) {
        try {
            run(args[0]);
        } catch (Exception e) {
            System.err.println(e.toString().replaceAll("\\s+", " "));
            System.exit(1);
        }
    }

    static void run(String request) throws Exception {
        var lines = new ArrayList<String[]>();
        var fields = Files.readString(Path.of(request)).split("\0", -1);
        for (int i = 0; i + 5 < fields.length; i += 5) lines.add(Arrays.copyOfRange(fields, i, i + 5));
        var env = OrtEnvironment.getEnvironment();
        var feeds = new LinkedHashMap<String, OnnxTensor>();
        for (var x : lines) {
            if (!x[0].equals("input")) continue;
            var bytes = Files.readAllBytes(Path.of(x[4]));
            var buffer = ByteBuffer.allocateDirect(bytes.length).order(ByteOrder.nativeOrder()).put(bytes).rewind();
            var shape = Arrays.stream(x[3].split(",")).filter(d -> !d.isEmpty()).mapToLong(Long::parseLong).toArray();
            feeds.put(x[1], OnnxTensor.createTensor(env, buffer, shape, TYPES.get(x[2])));
        }
        try (var session = env.createSession(lines.get(0)[1]); var results = session.run(feeds)) {
            for (var x : lines) {
                if (x[0].equals("output")) Files.write(Path.of(x[3]), numbers((OnnxTensor) results.get(x[1]).get()));
            }
        }
        System.out.println(env.getVersion());
    }

    static byte[] numbers(OnnxTensor t) {
        var type = t.getInfo().type;
        var from = t.getByteBuffer().order(ByteOrder.nativeOrder());
        var floats = t.getFloatBuffer(); // also of 16-bit types; null for others
        int size = type == OnnxJavaType.DOUBLE || type == OnnxJavaType.INT64 ? 8 : type == OnnxJavaType.INT32 ? 4 : 1;
        var out = ByteBuffer.allocate((floats != null ? floats.remaining() : from.remaining() / size) * 8).order(ByteOrder.LITTLE_ENDIAN);
        while (out.hasRemaining()) {
            out.putDouble(floats != null ? floats.get() : switch (type) {
                case DOUBLE -> from.getDouble();
                case INT64 -> from.getLong();
                case INT32 -> from.getInt();
                default -> from.get();
            });
        }
        return out.array();
    }
}
