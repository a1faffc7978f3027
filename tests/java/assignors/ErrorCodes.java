import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.protocol.Errors;

/** Kafka's error codes, one a line: number, name, and whether its exception is a RetriableException and a TimeoutException. */
public final class ErrorCodes {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            System.out.println(error.code() + " " + error.name() + " " + (error.exception() instanceof RetriableException)
                + " " + (error.exception() instanceof TimeoutException));
        }
    }
}
