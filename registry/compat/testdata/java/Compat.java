import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/**
 * Reads pairs "reader TAB writer", one a line, and says of each what Avro's Java library says. A
 * schema alone is answered with its text.
 */
public class Compat {
  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      out.println(verdict(line.split("\t")));
    }
    out.flush();
  }

  static String verdict(String[] pair) {
    Schema reader;
    Schema writer;
    try {
      reader = new Schema.Parser().parse(pair[0]);
      if (pair.length == 1) {
        return reader.toString();
      }
      writer = new Schema.Parser().parse(pair[1]);
    } catch (RuntimeException e) {
      return "INVALID " + String.valueOf(e.getMessage()).replaceAll("\\s+", " ");
    }
    SchemaCompatibility.SchemaCompatibilityResult r =
        SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult();
    if (r.getCompatibility() == SchemaCompatibility.SchemaCompatibilityType.COMPATIBLE) {
      return "COMPATIBLE";
    }
    SchemaCompatibility.Incompatibility first = r.getIncompatibilities().get(0);
    return "INCOMPATIBLE " + first.getType() + " at " + first.getLocation() + ": " + first.getMessage().replaceAll("\\s+", " ");
  }
}
