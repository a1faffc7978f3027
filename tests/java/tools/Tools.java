import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Apache Kafka's command-line tools, one after the other in one JVM: to start one for each takes longer than what they do.
 *
 * A line in: a class and its arguments, joined by NUL, in base64. A line out: the exit code, stdout and stderr, both in base64.
 */
public class Tools {
    private static final class Ended extends RuntimeException {
        final int code;

        Ended(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream errors = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8)); // once: Scala's println keeps what it finds at first
        System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> { throw new Ended(code); });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8).split("\0", -1);
            out.reset();
            errors.reset();
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            System.err.flush();
            Base64.Encoder encoder = Base64.getEncoder();
            answers.println(code + " " + encoder.encodeToString(out.toByteArray()) + " " + encoder.encodeToString(errors.toByteArray()));
            answers.flush();
        }
    }

    private static int run(String tool, String[] arguments) throws Exception {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof Ended) {
                return ((Ended) error.getCause()).code;
            }
            error.getCause().printStackTrace();
            return 1;
        }
    }
}
