import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import moa.classifiers.trees.FIMTDD;

/**
 * Times MOA's FIMT-DD on rows that are in memory: java -cp moa.jar Fimtdd.java FILE FEATURES PASSES.
 *
 * <p>The file holds big-endian doubles, row by row, the target last. Each pass predicts and then
 * learns every row with a fresh learner, and prints the nanoseconds that this took of the thread's
 * CPU time, and R².
 */
public class Fimtdd {
    public static void main(String[] arguments) throws IOException {
        int features = Integer.parseInt(arguments[1]);
        InstancesHeader header = header(features);
        List<Instance> rows = read(Path.of(arguments[0]), features, header);
        for (int pass = 0; pass < Integer.parseInt(arguments[2]); pass++) {
            time(header, rows);
        }
    }

    private static InstancesHeader header(int features) {
        List<Attribute> attributes = new ArrayList<>();
        for (int i = 0; i < features; i++) {
            attributes.add(new Attribute("x" + i));
        }
        attributes.add(new Attribute("y"));
        InstancesHeader header = new InstancesHeader(new Instances("rows", attributes, 0));
        header.setClassIndex(features);
        return header;
    }

    private static List<Instance> read(Path path, int features, InstancesHeader header)
            throws IOException {
        List<Instance> rows = new ArrayList<>();
        long count = Files.size(path) / Double.BYTES / (features + 1);
        try (DataInputStream in =
                new DataInputStream(new BufferedInputStream(Files.newInputStream(path)))) {
            for (long i = 0; i < count; i++) {
                double[] values = new double[features + 1];
                for (int j = 0; j <= features; j++) {
                    values[j] = in.readDouble();
                }
                Instance row = new DenseInstance(1.0, values);
                row.setDataset(header);
                rows.add(row);
            }
        }
        return rows;
    }

    private static void time(InstancesHeader header, List<Instance> rows) {
        FIMTDD learner = new FIMTDD();
        learner.setModelContext(header);
        learner.prepareForUse();
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        double[] predictions = new double[rows.size()];
        long start = threads.getCurrentThreadCpuTime();
        for (int i = 0; i < predictions.length; i++) {
            Instance row = rows.get(i);
            double[] votes = learner.getVotesForInstance(row);
            predictions[i] = votes.length > 0 ? votes[0] : 0.0;
            learner.trainOnInstance(row);
        }
        long taken = threads.getCurrentThreadCpuTime() - start;
        System.out.println(taken + " " + r2(rows, predictions));
    }

    private static double r2(List<Instance> rows, double[] predictions) {
        double mean = rows.stream().mapToDouble(Instance::classValue).average().orElse(0.0);
        double errors = 0.0;
        double whole = 0.0;
        for (int i = 0; i < predictions.length; i++) {
            double y = rows.get(i).classValue();
            errors += (y - predictions[i]) * (y - predictions[i]);
            whole += (y - mean) * (y - mean);
        }
        return 1.0 - errors / whole;
    }
}
