import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import com.yahoo.labs.samoa.instances.Prediction;
import com.yahoo.labs.samoa.instances.Range;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.util.ArrayList;
import java.util.List;
import moa.classifiers.AbstractClassifier;

/**
 * A learner of MOA's at the end of a pipe: java -cp moa.jar Moa.java CLASS KINDS [TARGETS].
 *
 * <p>CLASS is that of the learner, such as moa.classifiers.trees.FIMTDD. KINDS lists for each feature
 * how many categories it has, 0 for a number: "0,0,5". TARGETS is how many there are; where it is
 * given, even as 1, the learner is one for several, such as
 * moa.classifiers.multilabel.trees.ISOUPTree. Then commands are read, all numbers big-endian, and
 * answered:
 *
 * <ul>
 *   <li>0 and a text: start with a fresh learner and these options of MOA's; no answer.
 *   <li>1, n, and n rows of doubles, the targets last: predict and then learn each row. The answer
 *       is the nanoseconds that this took of the thread's CPU time, and what was predicted: n
 *       numbers, or those of all targets of the first row, then of the second, and so on.
 *   <li>2, n, and rows: the same, but the answer is n nanoseconds, each row by itself, and the
 *       predictions.
 *   <li>3: the bytes of the heap that a copy of the learner takes, and those of its serialized form;
 *       -1 where the learner is too deep or too large for that.
 *   <li>4, n, and rows: as 1, but no row is learned before all of them are predicted.
 * </ul>
 */
public class Moa {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private final Class<?> kind;
    private final int targets; // 0 for a learner that knows but one
    private final InstancesHeader header;
    private AbstractClassifier learner;
    private boolean hasCopied;

    private Moa(Class<?> kind, String[] kinds, int targets) {
        this.kind = kind;
        this.targets = targets;
        this.header = header(kinds, targets);
    }

    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        int targets = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 0;
        Moa program = new Moa(Class.forName(arguments[0]), arguments[1].split(","), targets);
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        for (int command = in.read(); command >= 0; command = in.read()) {
            switch (command) {
                case 0 -> program.start(in.readUTF());
                case 1 -> program.follow(program.read(in), out);
                case 2 -> program.followSingly(program.read(in), out);
                case 3 -> program.measure(out);
                default -> program.followLate(program.read(in), out);
            }
            out.flush();
        }
    }

    private static InstancesHeader header(String[] kinds, int targets) {
        List<Attribute> attributes = new ArrayList<>();
        for (int i = 0; i < kinds.length; i++) {
            List<String> categories = new ArrayList<>();
            for (int j = 0; j < Integer.parseInt(kinds[i]); j++) {
                categories.add("c" + j);
            }
            String name = "x" + i;
            attributes.add(categories.isEmpty() ? new Attribute(name) : new Attribute(name, categories));
        }
        for (int i = 0; i < Math.max(1, targets); i++) {
            attributes.add(new Attribute("y" + i));
        }
        Instances rows = new Instances("rows", attributes, 0);
        if (targets > 0) {
            // Places are counted from 1, and the last is among them.
            rows.setRangeOutputIndices(new Range((kinds.length + 1) + "-" + attributes.size()));
            return new InstancesHeader(rows);
        }
        InstancesHeader header = new InstancesHeader(rows);
        header.setClassIndex(kinds.length);
        return header;
    }

    private void start(String options) throws ReflectiveOperationException {
        learner = (AbstractClassifier) kind.getDeclaredConstructor().newInstance();
        learner.getOptions().setViaCLIString(options);
        if (targets == 0) {
            learner.setModelContext(header);
            learner.prepareForUse();
        } else {
            learner.prepareForUse(); // with which it can draw the weights of its first leaf
            learner.setModelContext(header);
        }
    }

    private List<Instance> read(DataInputStream in) throws IOException {
        int count = in.readInt();
        int width = header.numAttributes();
        byte[] bytes = new byte[count * width * Double.BYTES];
        in.readFully(bytes);
        DoubleBuffer numbers = ByteBuffer.wrap(bytes).asDoubleBuffer();
        List<Instance> rows = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            double[] values = new double[width];
            numbers.get(values);
            Instance row = new DenseInstance(1.0, values);
            row.setDataset(header);
            rows.add(row);
        }
        return rows;
    }

    private void follow(List<Instance> rows, DataOutputStream out) throws IOException {
        double[][] predictions = new double[rows.size()][];
        long start = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < predictions.length; i++) {
            predictions[i] = predictAndLearn(rows.get(i));
        }
        out.writeLong(THREADS.getCurrentThreadCpuTime() - start);
        write(predictions, out);
    }

    private void followSingly(List<Instance> rows, DataOutputStream out) throws IOException {
        double[][] predictions = new double[rows.size()][];
        long[] taken = new long[rows.size()];
        for (int i = 0; i < predictions.length; i++) {
            long start = THREADS.getCurrentThreadCpuTime();
            predictions[i] = predictAndLearn(rows.get(i));
            taken[i] = THREADS.getCurrentThreadCpuTime() - start;
        }
        for (long each : taken) {
            out.writeLong(each);
        }
        write(predictions, out);
    }

    private void followLate(List<Instance> rows, DataOutputStream out) throws IOException {
        double[][] predictions = new double[rows.size()][];
        long start = THREADS.getCurrentThreadCpuTime();
        for (int i = 0; i < predictions.length; i++) {
            predictions[i] = predict(rows.get(i));
        }
        for (Instance row : rows) {
            learner.trainOnInstance(row);
        }
        out.writeLong(THREADS.getCurrentThreadCpuTime() - start);
        write(predictions, out);
    }

    private double[] predictAndLearn(Instance row) {
        double[] prediction = predict(row);
        learner.trainOnInstance(row);
        return prediction;
    }

    private double[] predict(Instance row) {
        if (targets == 0) {
            return learner.getVotesForInstance(row);
        }
        Prediction prediction = learner.getPredictionForInstance(row);
        double[] values = new double[targets];
        for (int i = 0; i < targets; i++) {
            double[] votes = prediction.getVotes(i);
            values[i] = votes.length > 0 ? votes[votes.length - 1] : 0.0;
        }
        return values;
    }

    private void write(double[][] predictions, DataOutputStream out) throws IOException {
        for (double[] values : predictions) {
            for (int i = 0; i < Math.max(1, targets); i++) {
                out.writeDouble(i < values.length ? values[i] : 0.0);
            }
        }
    }

    private void measure(DataOutputStream out) throws IOException {
        long heap = -1;
        long file = -1;
        try {
            if (!hasCopied) {
                sizeOfCopy(); // the first copy of all brings classes with it
                hasCopied = true;
            }
            heap = sizeOfCopy();
            file = write(learner);
        } catch (StackOverflowError | OutOfMemoryError tooLarge) {
            System.err.println("the learner is too large to be written or copied");
        }
        out.writeLong(heap);
        out.writeLong(file);
    }

    private static long write(Object object) throws IOException {
        Counter counter = new Counter();
        try (ObjectOutputStream objects = new ObjectOutputStream(counter)) {
            objects.writeObject(object);
        }
        return counter.bytes;
    }

    /** Returns by how much a copy fills the heap; what has left the stack is no longer there. */
    private long sizeOfCopy() {
        long before = heap();
        Object copy = learner.copy();
        long size = heap() - before;
        Reference.reachabilityFence(copy);
        return size;
    }

    private static long heap() {
        System.gc();
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    /** Keeps nothing of what is written but its length. */
    private static final class Counter extends OutputStream {
        private long bytes;

        @Override
        public void write(int one) {
            bytes++;
        }

        @Override
        public void write(byte[] some, int from, int length) {
            bytes += length;
        }
    }
}
