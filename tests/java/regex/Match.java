import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * RE2/J asked by lines: an expression in base64, then names, separated by blanks. The answer to a line is a digit a name (1: the whole
 * name matches), or "!" and the words with which RE2/J refuses the expression, or "?" and the class of another failure.
 */
public final class Match {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line.split(" ")));
            out.flush();
        }
    }

    private static String answer(String[] words) {
        try {
            Pattern pattern = Pattern.compile(new String(Base64.getDecoder().decode(words[0]), StandardCharsets.UTF_8));
            StringBuilder digits = new StringBuilder();
            for (int i = 1; i < words.length; i++) {
                digits.append(pattern.matcher(words[i]).matches() ? '1' : '0');
            }
            return digits.toString();
        } catch (PatternSyntaxException error) {
            return "!" + error.getDescription();
        } catch (Throwable error) {
            return "?" + error.getClass().getSimpleName();
        }
    }
}
